#include "simulation/value_history.hpp"

#include "simulation/simulation.hpp"

#include <algorithm>

namespace zkasio::test {

void value_history::committed(const sim_txn& txn) {
    for (const sim_change& c : txn.changes) {
        if (c.path != path_) continue;
        if (c.what == sim_change::kind::removed) throw violation("the node was removed");
        const std::string& text = c.node.data;
        states_.push_back({c.node.stat.version, text});
        if (txn.session != 0) {
            if (!text.starts_with(good_))
                throw violation("\"" + good_ + "\" became \"" + text + "\": a change is lost");
            std::string id = text.substr(good_.size());
            if (id.empty() || id.find(' ') != id.size() - 1)
                throw violation("a write adds \"" + id + "\", not a change");
            id.pop_back();
            if (!made_.emplace(id, made{c.node.stat.version, txn.zxid}).second)
                throw violation(id + " was made twice");
            if (never_.contains(id)) throw violation(id + " was made, and told was that it is not");
        }
        if (is_readable(text)) good_ = text;
    }
}

void value_history::was_made(const std::string& id) const {
    if (!made_.contains(id)) throw violation(id + " is lost");
}

void value_history::was_made(const std::string& id, std::int32_t version, std::optional<std::int64_t> zxid) const {
    was_made(id);
    const made& m = made_.at(id);
    if (m.version != version) throw violation(id + " has led to another version than told");
    if (zxid && m.zxid != *zxid) throw violation(id + " was made in another transaction than told");
}

void value_history::was_not_made(const std::string& id) {
    if (made_.contains(id)) throw violation(id + " was made, and its writer was told that it was not");
    never_.insert(id);
}

bool value_history::tells(const config_snapshot<std::string>& snapshot, const state& s) const {
    if (snapshot.version != s.version) return false;
    if (is_readable(s.text)) return !snapshot.problem && snapshot.value && *snapshot.value == s.text;
    // The last good value that this reader has seen stays.
    return snapshot.problem && snapshot.problem->code() == errc::invalid_argument &&
           (!snapshot.value || is_readable(*snapshot.value));
}

std::size_t value_history::find(const config_snapshot<std::string>& snapshot, std::size_t from,
                                const std::string& reader) const {
    const auto begin = states_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto found = std::find_if(begin, states_.end(), [&](const state& s) { return tells(snapshot, s); });
    if (found == states_.end())
        throw violation(reader + " tells version " + std::to_string(snapshot.version) + ", \"" +
                        (snapshot.value ? *snapshot.value : "-") + "\", which is not true since version " +
                        std::to_string(states_[from].version));
    return static_cast<std::size_t>(found - states_.begin());
}

}  // namespace zkasio::test
