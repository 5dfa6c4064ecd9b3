#include <zkasio/detail/session/hold_keeper.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace zkasio::detail {
namespace {

using namespace std::chrono_literals;

// The bytes of paths in one heartbeat, exceeded by one path at most. More nodes are checked in turns.
constexpr std::size_t heartbeat_budget = 200'000;
// Of these, for nodes that are watched: if such a node is gone, the watch has told so before the heartbeat is answered.
// They are checked in turns as well, in case their watches are lost, or an ACL keeps the events from this client.
constexpr std::size_t budget_for_watched = 4'000;

bool is_watched(const hold::own_node& node) { return node.watch && node.watch->is_set; }

// Only of a hold on one node, see session_hold::node_checked(). What was proven while the node was watched stays so.
void set_watched(hold& h, bool is_set) {
    if (h.nodes.size() != 1 || h.watched.load(std::memory_order_relaxed) == is_set) return;
    if (!is_set) h.checked = h.proven();
    h.watched.store(is_set, std::memory_order_release);
}

}  // namespace

boot_clock::rep hold::proven() const noexcept {
    // The write first: if the node is still watched after it, no event of the watch has come before the answer. For T
    // at most, as an ACL may keep events from this client.
    const boot_clock::rep written = session->written.load(std::memory_order_acquire);
    const boot_clock::rep found = checked.load(std::memory_order_acquire);
    if (!watched.load(std::memory_order_acquire) || written <= found) return found;
    const boot_clock::duration T = std::chrono::milliseconds(session->timeout_ms.load(std::memory_order_relaxed));
    return std::min(written, found + T.count());
}

// -------------------------------------------------------------------------------------------------------- holds

void hold_keeper::add(const hold_ptr& h) {
    session_record& s = *h->session;
    if (owner_.is_closing()) return end(h, loss_reason::closed);
    if (s.over) return end(h, loss_reason::session_expired);
    if (options_.suspension() == suspension_policy::lose && !link_.connected()) return end(h, loss_reason::suspended);
    for (const hold_ptr& part : h->parts) {
        if (const loss_reason why = part->reason; why != loss_reason::none) return end(h, why, part->lost_node);
        part->composites.push_back(h);
    }
    const time_point now = clock::now();
    h->checked = now.time_since_epoch().count();
    s.add(h);
    s.last_hold_began = now;
    s.watch_nodes_at(*h, now + s.lease.session_timeout() / 4);
    check_lease(now);
    heartbeat(now);
    owner_.timer_changed();
}

void hold_keeper::end(const hold_ptr& h, loss_reason why, const hold::own_node* lost, own_nodes then) {
    if (h->reason != loss_reason::none) return;
    if (lost) h->lost_node = lost;
    h->reason = why;
    h->watched = false;
    h->session->drop(h);
    for (const hold_ptr& part : h->parts)
        std::erase_if(part->composites, [&](const auto& whole) { return whole.expired() || whole.lock() == h; });
    for (const auto& weak : std::exchange(h->composites, {}))
        if (const hold_ptr whole = weak.lock()) end(whole, why, lost);
    for (hold::own_node& node : h->nodes)
        if (const watch_ptr w = std::exchange(node.watch, nullptr); w && then == own_nodes::stay) {
            w->fired->forget_calls();
            requests_.leave_watch(w);
        }
    const std::error_code code = why == loss_reason::released ? errc::lock_released : errc::lock_lost;
    waits_.fire(renewed_of(h), code);
    waits_.fire(lost_of(h), why == loss_reason::released ? code : std::error_code());
}

void hold_keeper::end_all(session_record& of, loss_reason why) {
    for (const auto& [number, h] : std::map(of.holds)) end(h, why);
}

void hold_keeper::watch(const hold_ptr& h) {
    if (h->reason != loss_reason::none) return;
    const time_point now = clock::now();
    h->session->watch_nodes_at(*h, now);
    watch_own_nodes(now);
    for (const hold_ptr& part : h->parts) watch(part);
}

void hold_keeper::check(const hold_ptr& h) {
    session_record& s = *h->session;
    if (h->reason != loss_reason::none || &s != owner_.current_session().get()) return;
    s.checks_wanted.insert(h->number);
    heartbeat(clock::now());
    owner_.timer_changed();
}

void hold_keeper::let_go(session_record& s) {
    s.unconfirmed.clear();
    s.to_watch.clear();
    s.checks_wanted.clear();
    for (const auto& [number, h] : std::exchange(s.holds, {})) {
        for (hold::own_node& node : h->nodes) node.watch.reset();
        h->lost.forget_calls();
    }
    s.check();
}

// -------------------------------------------------------------------------------------------------------- lease

void hold_keeper::connected(time_point now) {
    synced_ = now;
    watch_own_nodes(now);
}

void hold_keeper::disconnected(session_record& s) {
    for (const auto& [number, h] : s.holds) set_watched(*h, false);
    if (options_.suspension() == suspension_policy::lose) end_all(s, loss_reason::suspended);
}

void hold_keeper::confirm(session_record& s) {
    for (const auto& [number, h] : std::exchange(s.unconfirmed, {})) {
        h->confirmed.store(true, std::memory_order_release);
        waits_.fire(renewed_of(h));
    }
}

void hold_keeper::lease_changed(session_record& s) {
    const time_point end = s.lease.end();
    const boot_clock::rep before = s.lease_end.exchange(end.time_since_epoch().count(), std::memory_order_acq_rel);
    if (s.extended && end.time_since_epoch().count() > before) waits_.fire(std::exchange(s.extended, nullptr));
    if (!s.unconfirmed.empty() && end > clock::now()) confirm(s);
}

void hold_keeper::check_lease(time_point now) {
    const session_record_ptr s = owner_.current_session();
    if (s->holds.empty()) return;
    if (s->lease.end() > now) return confirm(*s);
    if (s->holds.size() == s->unconfirmed.size()) return;
    for (const auto& [number, h] : std::map(s->holds))
        if (!s->unconfirmed.contains(number)) end(h, loss_reason::lease_ended);
}

// --------------------------------------------------------------------------------------------------- heartbeats

hold_keeper::time_point hold_keeper::heartbeat_due(time_point now) const {
    const session_record& s = *owner_.current_session();
    // However they end, not more often than this: sooner where one that has failed could not be repeated in time.
    const clock::duration T = s.lease.session_timeout(), left = s.lease.end() - s.last_heartbeat;
    const auto allowed = s.last_heartbeat + (left > 0s ? std::clamp(left / 4, T / 64, T / 16) : T / 16);
    if (!s.checks_wanted.empty()) return allowed;
    // Without a lease, a hold waits for a renewal.
    return std::max(allowed, s.lease.end() > now ? s.lease.heartbeat_due() : s.lease.renewable_from());
}

// A transaction of the whole ensemble that changes nothing, and that says of each checked node whether it exists.
void hold_keeper::heartbeat(time_point now) {
    const session_record_ptr s = owner_.current_session();
    if (s->holds.empty() || s->heartbeat_under_way || !link_.connected() || owner_.is_closing()) return;
    if (now < heartbeat_due(now)) return;
    auto [beat, checked] = next_check(*s);
    command c(std::move(beat));
    c.pinned = s;
    auto done = [this, s, nodes = std::move(checked)](reply&& r) { heartbeat_answered(*s, nodes, r); };
    s->last_heartbeat = now;
    s->heartbeat_under_way = true;
    requests_.submit(std::move(c), std::move(done), request_table::urgency::first);
}

// Makes a heartbeat for the nodes of which a check is wanted, for those that are not watched, and for some of the
// others in turns. Half of it at least is for the latter two.
std::pair<multi_request, hold_keeper::checked_nodes> hold_keeper::next_check(session_record& s) const {
    multi_request beat;
    checked_nodes checked;
    std::size_t bytes = 0, bytes_of_watched = 0;
    const auto add = [&](const hold_ptr& h, hold::own_node& node) {
        if (node.unreadable) return std::size_t(0);
        const std::size_t size = node.path.size() + link_.chroot().size() + 25;
        beat.ops.emplace_back(check_op{node.path, any_version});
        checked.emplace_back(h, &node);
        bytes += size;
        return size;
    };
    std::set<const hold::own_node*> wanted;
    while (!s.checks_wanted.empty() && bytes < heartbeat_budget / 2) {
        const auto at = s.holds.find(*s.checks_wanted.begin());
        s.checks_wanted.erase(s.checks_wanted.begin());
        assert(at != s.holds.end());
        for (hold::own_node& node : at->second->nodes)
            if (bytes < heartbeat_budget / 2 && wanted.insert(&node).second) add(at->second, node);
    }
    struct turn {
        std::pair<std::uint64_t, std::size_t> is;
        const hold_ptr* of;
    };
    std::vector<turn> turns;
    for (const auto& [number, h] : s.holds)
        for (std::size_t i = 0; i < h->nodes.size(); ++i) turns.push_back({{number, i}, &h});
    const auto first = std::find_if(turns.begin(), turns.end(), [&](const turn& t) { return t.is >= s.next_to_check; });
    std::rotate(turns.begin(), first, turns.end());
    bool all = true;  // otherwise the next heartbeat begins with the first node that this one leaves out
    for (const auto& [is, h] : turns) {
        hold::own_node& node = (*h)->nodes[is.second];
        if (wanted.contains(&node)) continue;
        const bool watched = is_watched(node);
        if (bytes >= heartbeat_budget || (watched && bytes_of_watched >= budget_for_watched)) {
            if (std::exchange(all, false)) s.next_to_check = is;
        } else if (const std::size_t size = add(*h, node); watched) {
            bytes_of_watched += size;
        }
    }
    return {std::move(beat), std::move(checked)};
}

void hold_keeper::heartbeat_answered(session_record& s, const checked_nodes& checked, const reply& r) {
    s.heartbeat_under_way = false;
    if (&s != owner_.current_session().get()) return;
    bool node_gone = false;
    for (std::size_t i = 0; i < std::min(r.results.size(), checked.size()); ++i) {
        const auto& [h, node] = checked[i];
        if (r.results[i].code == zk_errc::no_node) {
            node_gone = true;
            end(h, loss_reason::node_deleted, node);
        } else if (r.results[i].code == zk_errc::no_auth) {
            // The node's ACL was changed: from now on only the session can be checked, and not the node.
            node->unreadable = true;
            h->checked = time_point::max().time_since_epoch().count();
            log_.warn("heartbeat: no permission to check " + node->path, {{"path", node->path}});
        }
    }
    if (!r.code) {
        for (const auto& [h, node] : checked) {
            h->checked = s.last_heartbeat.time_since_epoch().count();
            set_watched(*h, is_watched(*node));  // the request table has set it again, after another connection
        }
    }
    if (r.code && !node_gone && !r.sent) log_.warn("heartbeat: " + r.code.message());
    if (node_gone) heartbeat(clock::now());  // the other nodes were not checked
    owner_.timer_changed();
}

// How far a write extends the lease depends on the answers before it. So while no other request is sent, this read is.
// Its answer counts even if it says that there is no such node (below a chroot), or no permission. The library's own
// pings, whose times are unknown, are then not needed. Of a follower of ClickHouse Keeper the leader hears by no read:
// there a sync() takes its place, or the session of a client that is idle, or only reads, would end.
void hold_keeper::read_when_idle(time_point now) {
    if (now < own_read_due()) return;
    request question = exists_request{"/"};
    auto urgency = request_table::urgency::none;
    if (!link_.backend().is_zookeeper()) {
        question = sync_request{"/"};
        urgency = request_table::urgency::first;
        synced_ = now;
    }
    command c(std::move(question));
    c.pinned = owner_.current_session();
    requests_.submit(std::move(c), [under_way = own_read_](reply&&) {}, urgency);
}

hold_keeper::time_point hold_keeper::own_read_due() const {
    if (!link_.connected() || owner_.is_closing()) return time_point::max();
    const bool is_zookeeper = link_.backend().is_zookeeper();
    if (is_zookeeper && requests_.waiting() != 0) return time_point::max();
    const session_record& s = *owner_.current_session();  // a heartbeat that was just submitted is a request, too
    const time_point heard = std::max(time_point(clock::duration(s.written.load())), synced_);
    const time_point last = std::max(is_zookeeper ? requests_.last_sent() : heard, s.last_heartbeat);
    // A session that holds something, or has lately begun to: there may soon be another hold.
    const bool has_holds = !s.holds.empty() || last - 10 * s.lease.session_timeout() < s.last_hold_began;
    return last + (has_holds ? s.lease.read_interval() : s.lease.idle_interval());
}

// ------------------------------------------------------------------------------------------- watches on own nodes

// The owner of a lock that is held for longer than a quarter of the session timeout, see add(), has to learn at once
// that its node was deleted.
void hold_keeper::watch_own_nodes(time_point now) {
    session_record& s = *owner_.current_session();
    auto& due = s.to_watch;
    while (link_.connected() && !due.empty() && due.begin()->first <= now) {
        const hold_ptr h = s.holds.at(due.begin()->second);
        due.erase(due.begin());
        for (hold::own_node& node : h->nodes)
            if (!node.watch) watch_own_node(h, node);
    }
}

void hold_keeper::watch_own_node(const hold_ptr& h, hold::own_node& node) {
    const watch_ptr w = node.watch = std::make_shared<watch_state>();
    w->path = node.path;
    w->fired->call([this, h, &node, raw = w.get()] {
        node.watch.reset();
        set_watched(*h, false);
        if (raw->event == node_event::removed) return end(h, loss_reason::node_deleted, &node);
        h->session->watch_nodes_at(*h, clock::now());
        watch_own_nodes(clock::now());  // its data have changed, which uses the watch up
    });
    command c(get_request{node.path, true});
    c.pinned = owner_.current_session();
    c.watch = w;
    requests_.submit(std::move(c), [this, h, &node, w](reply&& r) { watch_answered(h, node, w, r); });
}

void hold_keeper::watch_answered(const hold_ptr& h, hold::own_node& node, const watch_ptr& w, const reply& r) {
    if (!r.code && node.watch != w) requests_.leave_watch(w);  // the hold has ended since
    if (!r.code && r.stat.ephemeral_owner != h->session->session_id.load())
        end(h, loss_reason::node_deleted, &node);  // another session's node of the same name (unfair_mutex)
    if (!r.code && node.watch == w) set_watched(*h, true);
    if (!r.code) return;
    w->fired->forget_calls();
    node.watch.reset();
    const auto T = h->session->lease.session_timeout();
    const auto pause = r.code == condition::retryable && r.hung_up_times == 0 ? T / 16 : T;
    if (r.code == zk_errc::no_node)
        end(h, loss_reason::node_deleted, &node);
    else
        h->session->watch_nodes_at(*h, clock::now() + pause);  // a refusal, or a lost connection
}

// -------------------------------------------------------------------------------------------------------- timer

void hold_keeper::on_time(time_point now) {
    heartbeat(now);
    watch_own_nodes(now);
    read_when_idle(now);
}

hold_keeper::time_point hold_keeper::due(time_point now) const {
    const session_record& s = *owner_.current_session();
    time_point due = own_read_due();
    if (s.holds.empty()) return due;
    due = std::min(due, s.lease.end() > now ? s.lease.end() : now + 1s);
    if (link_.connected() && !s.heartbeat_under_way) due = std::min(due, heartbeat_due(now));
    if (link_.connected() && !s.to_watch.empty()) due = std::min(due, s.to_watch.begin()->first);
    // The timer's clock stops while the machine is suspended, the lease's does not: look often enough.
    return std::min(due, now + std::max<clock::duration>(s.lease.session_timeout() / 8, 50ms));
}

}  // namespace zkasio::detail
