#include "simulation/holdings_checker.hpp"

#include <zkasio/path.hpp>

#include <algorithm>
#include <set>

namespace zkasio::test {

// ------------------------------------------------------------------------------------------------- what users tell

std::string holdings_checker::asks(int client, const lock_under_test& what, lock_kind, bool patient) {
    const std::string id = std::to_string(client) + '.' + std::to_string(attempts_.size());
    attempt a;
    a.client = client;
    a.patient = patient;
    a.shares = what.shares;
    attempts_.emplace(id, std::move(a));
    return id;
}

void holdings_checker::granted(const std::string& id, const lock_guard& guard) {
    attempt& a = attempts_.at(id);
    for (const std::string& path : guard.paths()) {
        const auto mine = std::find_if(nodes_.rbegin(), nodes_.rend(),
                                       [&](const node& n) { return n.path == path && n.attempt == id; });
        if (mine == nodes_.rend()) throw violation(id + " was granted without a node of its own");
        a.nodes.push_back(static_cast<std::size_t>(std::prev(mine.base()) - nodes_.begin()));
    }
    a.now = attempt::state::holding;
    a.guard = &guard;
    a.doubted = may_be_given_in_vain(id);
    check_complete(id, a);
    check_bodies(id, a);
    check();
}

void holdings_checker::gives_up(const std::string& id) {
    attempt& a = attempts_.at(id);
    a.now = attempt::state::gone;
    a.guard = nullptr;
}

void holdings_checker::released(const std::string& id) const {
    for (const std::size_t n : attempts_.at(id).nodes)
        if (nodes_[n].alive) throw violation(id + " was released, and its node is there");
}

// ----------------------------------------------------------------------------------------------- what the tree tells

// What the node is a part of; nothing: of no lock, as the places in the queue of a semaphore.
std::string holdings_checker::locked_by(const std::string& path) const {
    if (there_is_.contains(path)) return path;
    const std::string parent(parent_path(path));
    return there_is_.contains(parent) ? parent : std::string();
}

void holdings_checker::committed(const sim_txn& txn) {
    if (txn.session == 0 && !txn.changes.empty()) operator_was_here_ = true;
    for (const sim_change& c : txn.changes) {
        if (c.node.stat.ephemeral_owner == 0) continue;
        if (c.what == sim_change::kind::created) {
            latest_[c.path] = nodes_.size();
            nodes_.push_back({c.path, c.node.data, c.node.stat.ephemeral_owner, c.node.stat.czxid});
            if (!attempts_.contains(c.node.data)) throw violation(c.path + " does not say whose it is");
        } else if (c.what == sim_change::kind::removed) {
            node& n = nodes_[latest_.at(c.path)];
            n.alive = false;
            const bool by_another = txn.session != 0 && txn.session != n.owner;
            // Who looks whose node it is and then removes it may be mistaken when an operator removes his in between.
            if (by_another && !operator_was_here_)
                throw violation("the node of " + n.attempt + " was removed by another client");
            n.taken_away = txn.ends_session || txn.session == 0 || by_another;
        }
    }
}

void holdings_checker::told_removed(int client, const std::string& path, std::int64_t czxid) {
    const auto it = latest_.find(path);
    if (it == latest_.end()) return;
    node& n = nodes_[it->second];
    if (!n.alive && (n.czxid == czxid || czxid < 0) && attempts_.at(n.attempt).client == client) n.told = true;
}

// -------------------------------------------------------------------------------------------------------- checks

void holdings_checker::check_complete(const std::string& id, const attempt& a) const {
    std::map<std::string, std::size_t> wanted, got;
    for (const share& s : a.shares) wanted[s.of] += s.nodes;
    for (const std::size_t n : a.nodes) ++got[locked_by(nodes_[n].path)];
    if (wanted != got) throw violation(id + " was granted something else than it asked for");
}

// Of what it holds; what was taken away counts no longer.
int holdings_checker::weight(const attempt& a, const std::string& of) const {
    const auto s = std::find_if(a.shares.begin(), a.shares.end(), [&](const share& one) { return one.of == of; });
    if (s == a.shares.end()) return 0;
    const auto counts = std::count_if(a.nodes.begin(), a.nodes.end(), [&](const std::size_t n) {
        return !nodes_[n].taken_away && locked_by(nodes_[n].path) == of;
    });
    return static_cast<int>(counts) * s->weight;
}

void holdings_checker::check_bodies(const std::string& id, const attempt& a) const {
    if (!a.guard->held()) return;
    for (const auto& [of, all] : there_is_) {
        int used = 0;
        for (const auto& [other_id, other] : attempts_) {
            if (!other.working || other_id == id || other.client != a.client) continue;
            for (const std::size_t n : other.nodes)
                if (locked_by(nodes_[n].path) == of && ensemble_.alive(nodes_[n].owner))
                    used += std::find_if(other.shares.begin(), other.shares.end(), [&](const share& s) {
                                return s.of == of;
                            })->weight;
        }
        if (used > 0 && weight(a, of) > 0 && used + weight(a, of) > all)
            throw violation(id + " was granted " + of + ", under which a body of its client still runs");
    }
}

void holdings_checker::check_amounts(whom counts) const {
    std::vector<std::map<std::string, attempt>::const_iterator> holders;
    for (auto it = attempts_.begin(); it != attempts_.end(); ++it)
        if (it->second.now == attempt::state::holding && it->second.guard->held() &&
            (counts == whom::all || !it->second.doubted))
            holders.push_back(it);
    if (holders.size() < 2) return;
    for (const auto& [of, all] : there_is_) {
        int held = 0;
        std::string by;
        for (const auto& h : holders) held += weight(h->second, of);
        if (held <= all) continue;
        for (const auto& h : holders)
            if (weight(h->second, of) > 0) by += ' ' + h->first;
        throw violation("more is held of " + of + " than there is, by" + by);
    }
}

void holdings_checker::check() const {
    for (const auto& [id, a] : attempts_) {
        if (a.now != attempt::state::holding || !a.guard->held()) continue;
        for (const std::size_t n : a.nodes) {
            if (nodes_[n].told) throw violation(id + " was told that a node of its is gone, and still holds");
            if (!nodes_[n].alive && !nodes_[n].taken_away)
                throw violation(id + " holds, and its own client has removed a node of its");
        }
    }
    check_amounts(whom::but_doubted);
}

// An operator has taken a node of its away, no watch has told, and it did not find out by itself: then there would be
// another one in its place.
bool holdings_checker::has_unknown_loss(const std::string& id) const {
    for (std::size_t lost = 0; lost < nodes_.size(); ++lost) {
        const node& n = nodes_[lost];
        if (n.attempt != id || !n.taken_away || n.told || !ensemble_.alive(n.owner)) continue;
        const bool replaced = std::any_of(
            nodes_.begin() + static_cast<std::ptrdiff_t>(lost) + 1, nodes_.end(),
            [&](const node& later) { return later.attempt == id && parent_path(later.path) == parent_path(n.path); });
        if (!replaced) return true;
    }
    return false;
}

// Another one of its client has lost something of the kind, and may have given it on without knowing.
bool holdings_checker::may_be_given_in_vain(const std::string& id) const {
    const attempt& a = attempts_.at(id);
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const node& n) {
        if (n.attempt == id || !n.taken_away || n.told || n.over || attempts_.at(n.attempt).client != a.client)
            return false;
        const std::string of = locked_by(n.path);
        return std::any_of(a.shares.begin(), a.shares.end(), [&](const share& s) { return s.of == of; });
    });
}

std::optional<int> holdings_checker::waits_for_a_heartbeat() const {
    for (const auto& [id, a] : attempts_)
        if (a.now == attempt::state::asking && has_unknown_loss(id)) return a.client;
    return std::nullopt;
}

// Whether somebody holds who stands in the way of this one, or of one who does, and so on.
bool holdings_checker::somebody_holds(const std::string& waiter) const {
    std::set<std::string> seen{waiter};
    std::vector<std::string> next{waiter};
    const auto meet = [](const attempt& a, const attempt& b) {
        return std::any_of(a.shares.begin(), a.shares.end(), [&](const share& one) {
            return std::any_of(b.shares.begin(), b.shares.end(),
                               [&](const share& other) { return one.of == other.of; });
        });
    };
    while (!next.empty()) {
        const std::string id = std::move(next.back());
        next.pop_back();
        const attempt& a = attempts_.at(id);
        if (a.has_lost() && !a.working) continue;
        if (a.now == attempt::state::holding || has_unknown_loss(id)) return true;
        for (const auto& [other_id, other] : attempts_)
            if (other.now != attempt::state::gone && meet(a, other) && seen.insert(other_id).second)
                next.push_back(other_id);
    }
    return false;
}

void holdings_checker::check_quiet() {
    check_amounts(whom::all);
    for (auto& [id, a] : attempts_) a.doubted = false;
    for (node& n : nodes_) n.over = n.over || (!n.alive && attempts_.at(n.attempt).now == attempt::state::gone);
    for (const node* n : alive())
        if (attempts_.at(n->attempt).now == attempt::state::gone)
            throw violation("the node of " + n->attempt + " is left");
    for (const auto& [id, a] : attempts_)
        for (const std::size_t n : a.nodes)
            if (a.has_lost() && nodes_[n].alive)
                throw violation(id + " has lost " + nodes_[n].path + ", which is left");
    for (const auto& [id, a] : attempts_) {
        if (a.now == attempt::state::asking && !a.patient) throw violation(id + " waits, and should not");
        if (a.now == attempt::state::asking && !somebody_holds(id)) throw violation(id + " waits for nobody");
        if (a.now != attempt::state::holding || a.guard->reason() != loss_reason::none) continue;
        for (const std::size_t n : a.nodes)
            if (!ensemble_.alive(nodes_[n].owner)) throw violation(id + " was not told that its session is over");
    }
}

void holdings_checker::check_end() const {
    for (const auto& [id, a] : attempts_)
        if (a.now != attempt::state::gone) throw violation(id + " has not ended");
    for (const auto& [path, n] : ensemble_.tree().nodes())
        if (n.stat.ephemeral_owner != 0) throw violation("a node is left: " + path);
}

std::size_t holdings_checker::losses() const {
    return static_cast<std::size_t>(std::count_if(attempts_.begin(), attempts_.end(),
                                                  [](const auto& a) { return a.second.has_lost(); }));
}

bool holdings_checker::busy(int client) const {
    return std::any_of(attempts_.begin(), attempts_.end(), [&](const auto& a) {
        return a.second.client == client && a.second.now != attempt::state::gone;
    });
}

std::vector<const holdings_checker::node*> holdings_checker::alive() const {
    std::vector<const node*> all;
    for (const node& n : nodes_)
        if (n.alive) all.push_back(&n);
    return all;
}

std::string holdings_checker::nth_node(std::size_t n) const {
    const std::vector<const node*> all = alive();
    return n < all.size() ? all[n]->path : std::string();
}

}  // namespace zkasio::test
