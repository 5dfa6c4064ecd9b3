#include "simulation/tree_history.hpp"

#include "simulation/simulation.hpp"

#include <zkasio/path.hpp>

#include <algorithm>
#include <set>

namespace zkasio::test {
namespace {

template <class State>
const std::vector<State>& of_beginning(const std::string& path) {
    static const std::vector<State> missing(1), root = [] {
        std::vector<State> states(1);
        states.front().there = true;
        return states;
    }();
    return path == "/" ? root : missing;
}

template <class State>
void add(std::map<std::string, std::vector<State>>& to, const std::string& path, State s) {
    to.try_emplace(path, of_beginning<State>(path)).first->second.push_back(std::move(s));
}

}  // namespace

void tree_history::committed(const sim_txn& txn, const sim_tree& after) {
    std::set<std::string> listed;
    for (const sim_change& c : txn.changes) {
        const node_stat& stat = c.node.stat;
        if (c.what == sim_change::kind::removed)
            add(states_, c.path, {txn.zxid, false, 0, 0, {}});
        else
            add(states_, c.path, {txn.zxid, true, stat.czxid, stat.mzxid, c.node.data});
        if (c.what == sim_change::kind::data_set || c.what == sim_change::kind::acl_set) continue;
        listed.insert(c.path);
        listed.insert(std::string(parent_path(c.path)));
    }
    for (const std::string& path : listed) {
        const sim_node* node = after.find(path);
        listing l;
        l.since = txn.zxid;
        l.there = node != nullptr;
        if (node) {
            l.czxid = node->stat.czxid;
            l.pzxid = node->stat.pzxid;
            l.names = after.children(path);
        }
        add(listings_, path, std::move(l));
    }
}

const tree_history::states& tree_history::states_of(const std::string& path) const {
    const auto it = states_.find(path);
    return it == states_.end() ? of_beginning<state>(path) : it->second;
}

const tree_history::listings& tree_history::listings_of(const std::string& path) const {
    const auto it = listings_.find(path);
    return it == listings_.end() ? of_beginning<listing>(path) : it->second;
}

// ------------------------------------------------------------------------------------------------- what is told

// The first that fits, and is not older than the one before: whoever has told this one may tell most others later.
template <class States, class Fits>
void told_history::advance(const States& states, const std::string& path, std::int64_t floor, bool is_news, Fits fits) {
    const auto [known, is_first] = at_.try_emplace(path, 0);
    std::size_t at = known->second + (is_news && !is_first ? 1 : 0);
    while (at + 1 < states.size() && states[at + 1].since <= floor) ++at;
    while (at < states.size() && !fits(states[at])) ++at;
    if (is_news && !is_first && at < states.size() && !states[at].there && !states[known->second].there)
        throw violation(who_ + " tells twice that there is no " + path);
    if (at < states.size()) {
        known->second = at;
        return;
    }
    std::string text = who_ + " shows a state of " + path + " that was not";
    const auto ever = std::find_if(states.begin(), states.end(), fits);
    text += ever == states.end() ? "" : " any more: that of " + std::to_string(ever->since);
    text += ", after that of " + std::to_string(states[known->second].since) + " and behind " + std::to_string(floor);
    throw violation(text);
}

void told_history::shows(const std::string& path, const cached_node& node, bool with_data, std::int64_t floor) {
    advance(history_->states_of(path), path, floor, false, [&](const tree_history::state& s) {
        if (!node || !s.there) return s.there == static_cast<bool>(node);
        const bool same = s.czxid == node.stat().czxid && s.mzxid == node.stat().mzxid && node.readable();
        return same && node.data() == (with_data ? s.data : std::string());
    });
}

void told_history::tells(const std::string& path, const std::optional<node_data>& value, std::int64_t floor) {
    advance(history_->states_of(path), path, floor, true, [&](const tree_history::state& s) {
        if (!value || !s.there) return s.there == value.has_value();
        return s.czxid == value->stat.czxid && s.mzxid == value->stat.mzxid && s.data == value->data;
    });
}

void told_history::tells(const std::string& path, const std::optional<node_children>& children, std::int64_t floor) {
    advance(history_->listings_of(path), path, floor, true, [&](const tree_history::listing& l) {
        if (!children || !l.there) return l.there == children.has_value();
        return l.czxid == children->stat.czxid && l.pzxid == children->stat.pzxid && l.names == children->names;
    });
}

}  // namespace zkasio::test
