#include "simulation/queue_checker.hpp"

#include "simulation/simulation.hpp"

#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio::test {
namespace {

// "...-lock-0000000012" is 12, "...-lock--000000005" is -5. On purpose not the library's own code.
std::int32_t number_of(const std::string& name) {
    const std::size_t lock = name.rfind("-lock-"), reads_or_writes = name.rfind("__");
    return std::stoi(name.substr(lock != std::string::npos ? lock + 6 : reads_or_writes + 2));
}

}  // namespace

bool queue_checker::before(const node& a, const node& b) {
    if (a.place != b.place) return a.place < b.place;
    // A writer that becomes a reader has both nodes for a moment.
    return a.kind == lock_kind::exclusive && b.kind == lock_kind::shared;
}

bool queue_checker::blocks(const node& other, const node& n) {
    return other.alive && before(other, n) && conflict(other.kind, n.kind);
}

bool queue_checker::first(const node& n) const {
    return std::none_of(nodes_.begin(), nodes_.end(), [&](const auto& other) { return blocks(other.second, n); });
}

// It holds, and whatever is still there before it are places that others of its client have given up: also one that an
// ACL does not let its client remove.
bool queue_checker::owns(const node& n) const {
    if (attempts_.at(n.attempt).now != attempt::state::holding) return false;
    return std::none_of(nodes_.begin(), nodes_.end(), [&](const auto& other) {
        const attempt& a = attempts_.at(other.second.attempt);
        const bool given_up = other.second.owner == n.owner && a.now == attempt::state::gone;
        return blocks(other.second, n) && !given_up;
    });
}

// ------------------------------------------------------------------------------------------------- what users tell

std::string queue_checker::asks(int client, const lock_under_test&, lock_kind kind, bool patient) {
    const std::string id = std::to_string(client) + '.' + std::to_string(attempts_.size());
    attempt a;
    a.client = client;
    a.patient = patient;
    a.kind = kind;
    attempts_.emplace(id, a);
    return id;
}

void queue_checker::granted(const std::string& id, const lock_guard& guard) {
    attempt& a = attempts_.at(id);
    const auto it = nodes_.find(guard.path());
    if (it == nodes_.end()) throw violation(id + " was granted without a node");
    const node& n = it->second;
    if (n.attempt != id) throw violation(id + " was granted the node of " + n.attempt);
    const std::int64_t token = guard.token().value();
    if (token != n.czxid && token != n.place) throw violation(id + " has a wrong token");
    ++grants_;
    a.now = attempt::state::holding;
    a.guard = &guard;
    a.path = guard.path();
    holding_.emplace(id, &a);
    if (n.fenced || !guard.held()) return;
    check_exclusion(id, a);
    check_order(a.path, n);
    // Readers share: only a writer is alone with its token.
    const bool exclusive = n.kind == lock_kind::exclusive;
    if (token != n.place) return;  // a reader that has joined others
    if (token < last_token_ || (exclusive && token <= std::max(last_token_, last_shared_token_)))
        throw violation(id + " has a token that is not larger than an earlier one");
    std::int64_t& last = exclusive ? last_token_ : last_shared_token_;
    last = std::max(last, token);
}

void queue_checker::gives_up(const std::string& id) {
    attempt& a = attempts_.at(id);
    a.now = attempt::state::gone;
    a.guard = nullptr;
    holding_.erase(id);
}

void queue_checker::released(const std::string& id) const {
    const attempt& a = attempts_.at(id);
    if (nodes_.at(a.path).alive) throw violation(id + " was released, and its node is there");
}

// ----------------------------------------------------------------------------------------------- what the tree tells

void queue_checker::committed(const sim_txn& txn) {
    for (const sim_change& c : txn.changes) {
        if (parent_path(c.path) != directory_) continue;
        if (c.what == sim_change::kind::created) {
            const std::int32_t number = number_of(c.path);
            if (is_sequential(c.node.mode)) places_[number] = c.node.stat.czxid;
            node n;
            n.attempt = c.node.data;
            n.kind = attempts_.at(n.attempt).kind;
            n.owner = c.node.stat.ephemeral_owner;
            n.czxid = c.node.stat.czxid;
            n.place = places_.at(number);
            nodes_[c.path] = n;
        } else if (c.what == sim_change::kind::removed) {
            node& n = nodes_.at(c.path);
            n.alive = false;
            n.fenced = txn.ends_session || (txn.session == 0 && (first(n) || owns(n)));
            n.deleted = txn.session == 0 && !n.fenced;
            if (n.fenced && txn.session == 0) fence_successors(n);
            if (n.deleted) fence_behind_lost_owner(n);
        }
    }
    if (!txn.ends_session) return;
    for (auto& [path, n] : nodes_)  // also those that an operator has deleted, and whose owners may be let in yet
        if (n.owner == txn.session) n.fenced = true;
}

void queue_checker::told_removed(int client, const std::string& path, std::int64_t) {
    const auto it = nodes_.find(path);
    if (it != nodes_.end() && attempts_.at(it->second.attempt).client == client) it->second.told = true;
}

// An owner that has not learned yet that its node is gone hands over what it does not have any more, to somebody who
// may have no node either: that one learns of it from the answer. Those of its client in between may have left by then,
// and readers of other clients in between share the lock with readers.
void queue_checker::fence_successors(const node& owner) {
    std::map<std::int64_t, node*> behind;
    for (auto& [path, n] : nodes_)
        if (before(owner, n)) behind.emplace(n.place, &n);
    bool reader_between = false;
    for (auto& [place, n] : behind) {
        if (n->alive && n->owner != owner.owner) {
            if (n->kind == lock_kind::exclusive) break;
            reader_between = true;
        } else if (n->deleted && n->owner == owner.owner && !(reader_between && n->kind == lock_kind::exclusive)) {
            n->fenced = true;
        }
    }
}

// The same when the owner's node went first.
void queue_checker::fence_behind_lost_owner(const node& successor) {
    for (const auto& [path, n] : nodes_) {
        const bool lost_its_node = n.fenced && !n.alive && attempts_.at(n.attempt).now != attempt::state::gone;
        if (lost_its_node && n.owner == successor.owner && before(n, successor)) fence_successors(n);
    }
}

// -------------------------------------------------------------------------------------------------------- checks

void queue_checker::check_exclusion(const std::string& id, const attempt& a) const {
    for (const auto& [other_id, other] : holding_) {
        if (other == &a || !conflict(a.kind, other->kind)) continue;
        if (other->guard->held() && !nodes_.at(other->path).fenced)
            throw violation(id + " and " + other_id + " both hold");
    }
}

void queue_checker::check_order(const std::string& path, const node& n) {
    if (!n.passed_by.empty())
        throw violation(n.passed_by + " was granted before " + n.attempt + ", which came earlier and did not leave");
    for (auto& [other_path, other] : nodes_) {
        if (other_path == path || !blocks(other, n)) continue;
        const attempt& a = attempts_.at(other.attempt);
        // A session's removals come before whatever it does next; another session has to see that the node is gone. A
        // try_acquire may have been refused, and its coroutine be late; if it was granted, both hold:
        // check_exclusion().
        const bool refused = a.now == attempt::state::asking && !a.patient;
        const bool leaving = other.owner == n.owner && (a.now == attempt::state::gone || a.has_lost() || refused ||
                                                        (a.now == attempt::state::holding && a.path != other_path));
        // Whoever has lost the lease before the news of the grant has come leaves, and its coroutine is not told yet:
        // then this node is never granted.
        if (!leaving && other.owner == n.owner && a.now == attempt::state::asking)
            other.passed_by = n.attempt;
        else if (!leaving)
            throw violation(n.attempt + " was granted before " + other.attempt + ", which came earlier");
    }
}

void queue_checker::check() const {
    for (const auto& [id, a] : holding_) {
        if (!a->guard->held()) continue;
        const node& n = nodes_.at(a->path);
        if (n.told) throw violation(id + " was told that its node is gone, and still holds");
        if (n.fenced) continue;
        if (!n.alive && !n.deleted) throw violation(id + " holds, and its own client has removed its node");
        check_exclusion(id, *a);
    }
}

// A client learns of an operator's removal some time later, at the latest from a heartbeat: too late for the
// simulation. An owner that knows of its loss is in nobody's way, also if it keeps its guard.
bool queue_checker::behind_deleted(const attempt& waiter) const {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& other) {
        const attempt& a = attempts_.at(other.second.attempt);
        const bool deleted = !other.second.alive && (other.second.deleted || other.second.fenced);
        return deleted && a.client == waiter.client && a.now != attempt::state::gone && !a.has_lost() && &a != &waiter;
    });
}

void queue_checker::check_quiet() {
    for (const auto& [path, n] : nodes_) {
        const attempt& a = attempts_.at(n.attempt);
        const bool expired = n.fenced && !ensemble_.alive(n.owner);
        if (expired && a.now == attempt::state::holding && a.path == path && a.guard->reason() == loss_reason::none)
            throw violation(n.attempt + " was not told that its session is over");
        if (!n.alive) continue;
        if (a.now == attempt::state::asking && !a.patient) throw violation(n.attempt + " waits, and should not");
        if (a.now == attempt::state::gone) throw violation("the node of " + n.attempt + " is left");
        if (a.has_lost() && a.path == path) throw violation(n.attempt + " has lost the lock, and its node is left");
        if (first(n) && a.now == attempt::state::asking && !behind_deleted(a))
            throw violation(n.attempt + " is the first, and is left waiting");
    }
    for (const auto& [id, a] : attempts_)
        if (a.now == attempt::state::asking && nodes_alive() == 0 && !behind_deleted(a))
            throw violation(id + " waits for nobody");
}

void queue_checker::check_end() const {
    for (const auto& [id, a] : attempts_)
        if (a.now != attempt::state::gone) throw violation(id + " has not ended");
    for (const std::string& name : ensemble_.tree().children(directory_)) throw violation("a node is left: " + name);
}

std::size_t queue_checker::losses() const {
    return static_cast<std::size_t>(std::count_if(attempts_.begin(), attempts_.end(),
                                                  [](const auto& a) { return a.second.has_lost(); }));
}

bool queue_checker::busy(int client) const {
    return std::any_of(attempts_.begin(), attempts_.end(), [&](const auto& a) {
        return a.second.client == client && a.second.now != attempt::state::gone;
    });
}

bool queue_checker::all_told() const {
    return std::none_of(attempts_.begin(), attempts_.end(), [&](const auto& other) {
        const attempt& a = other.second;
        return a.now == attempt::state::holding && !nodes_.at(a.path).alive && a.guard->reason() == loss_reason::none;
    });
}

std::string queue_checker::nth_node(std::size_t wanted) const {
    std::vector<std::pair<std::int64_t, std::string>> alive;
    for (const auto& [path, n] : nodes_)
        if (n.alive) alive.emplace_back(n.place, path);
    std::sort(alive.begin(), alive.end());
    return wanted < alive.size() ? alive[wanted].second : std::string();
}

std::size_t queue_checker::nodes_alive() const {
    return static_cast<std::size_t>(
        std::count_if(nodes_.begin(), nodes_.end(), [](const auto& n) { return n.second.alive; }));
}

}  // namespace zkasio::test
