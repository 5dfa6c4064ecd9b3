// The result of every operation can be given to asio::co_spawn; some, with every completion token.
#include "unit/support/awaitable_members.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"
#include "unit/support/token_list.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/local_turn.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>
#include <zkasio/transact/transact.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> guarded_work(lock_guard&) { co_return; }
asio::awaitable<void> inside(barrier_entry&) { co_return; }
asio::awaitable<void> leading_work(leadership&) { co_return; }
asio::awaitable<void> led_work(const leadership&) { co_return; }
int same_number(int n) { return n; }
asio::awaitable<void> partition_work_of(held_partition&) { co_return; }
asio::awaitable<void> job_of(delivery&) { co_return; }
asio::awaitable<void> within_session(session) { co_return; }
asio::awaitable<void> within_scope(task_scope&) { co_return; }
asio::awaitable<void> within_unit(unit&) { co_return; }
std::optional<std::string> same_data(std::optional<node_data>) { return std::nullopt; }
asio::awaitable<std::shared_ptr<lock_claim>> no_claim_at_all() { co_return nullptr; }

void list_sessions(token_list& all) {
    all.compiles<client>("client.hpp connected", [](auto& c) { return c.connected(); });
    all.compiles<client>("client.hpp current_session", [](auto& c) { return c.current_session(); });
    all.compiles<client>("client.hpp credentials", [](auto& c) { return c.credentials(); });
    all.compiles<client>("client.hpp add_auth", [](auto& c) { return c.add_auth("", ""); });
    all.compiles<client>("client.hpp set_servers", [](auto& c) { return c.set_servers(""); });
    all.compiles<client>("client.hpp with_session", [](auto& c) { return c.with_session(within_session); });
    all.compiles<client>("client.hpp idle", [](auto& c) { return c.idle(); });
    all.compiles<client>("client.hpp close", [](auto& c) { return c.close(); });
    all.compiles<client>("client.hpp hand_over", [](auto& c) { return c.hand_over(); });
    all.compiles<session_events>("client.hpp next", [](auto& e) { return e.next(); });
    all.compiles<session>("session.hpp ended", [](auto& s) { return s.ended(); });
    all.compiles<session>("session.hpp lease_extended", [](auto& s) { return s.lease_extended({}); });
    all.compiles<session_hold>("session.hpp confirmed", [](auto& h) { return h.confirmed(); });
    all.compiles<session_hold>("session.hpp lost", [](auto& h) { return h.lost(); });
    all.compiles<session_hold>("session.hpp run", [](auto& h) { return h.run(nothing); });
    all.compiles<session_loop>("session_loop.hpp stopped", [](auto& l) { return l.stopped(); });
    all.compiles<watch>("watch.hpp changed", [](auto& w) { return w.changed(); });
    all.compiles<watch_stream>("watch_stream.hpp next", [](auto& w) { return w.next(); });
    all.compiles<watch_stream>("watch_stream.hpp close", [](auto& w) { return w.close(); });
    all.compiles<one_shot_event>("events.hpp wait", [](auto& e) { return e.wait(); });
    const auto looked = [] { return true; };
    all.compiles<change_event>("events.hpp until", [=](auto& e) { return e.until(looked, "look", "/a"); });
    all.compiles<local_turn>("local_turn.hpp come", [](auto& t) { return t.come("come", "/a"); });
    all.compiles<one_shot_event>("events.hpp run_until", [](auto& e) { return e.run_until(nothing); });
    all.compiles<receipts>("receipts.hpp apply", [](auto& r) { return r.apply(transaction()); });
    all.compiles<back_off>("back_off.hpp pause", [](auto& b) { return b.pause(); });
    all.compiles<pending>("pending.hpp answered", [](auto& p) { return p.answered(); });
    all.compiles<pending_create>("pending.hpp result", [](auto& p) { return p.result(); });
    all.compiles<pending_children>("pending.hpp result", [](auto& p) { return p.result(); });
    all.compiles<pending_data>("pending.hpp result", [](auto& p) { return p.result(); });
    all.compiles<pending_removal>("pending.hpp result", [](auto& p) { return p.result(); });
}

void list_caches(token_list& all) {
    all.compiles<cache>("cache.hpp ready", [](auto& c) { return c.ready(); });
    all.compiles<cache>("cache.hpp close", [](auto& c) { return c.close(); });
    all.compiles<cache_changes>("cache.hpp next", [](auto& c) { return c.next(); });
    all.compiles<value_stream>("streams.hpp next", [](auto& s) { return s.next(); });
    all.compiles<value_stream>("streams.hpp settled", [](auto& s) { return s.settled(0ns); });
    all.compiles<value_stream>("streams.hpp close", [](auto& s) { return s.close(); });
    all.compiles<children_stream>("streams.hpp next", [](auto& s) { return s.next(); });
    all.compiles<children_stream>("streams.hpp settled", [](auto& s) { return s.settled(0ns); });
    all.compiles<children_stream>("streams.hpp close", [](auto& s) { return s.close(); });
    all.compiles<node_follower>("node_follower.hpp next", [](auto& f) { return f.next({}); });
    all.compiles<node_follower>("node_follower.hpp close", [](auto& f) { return f.close(); });
    all.compiles<config_changes<int>>("config_value.hpp next", [](auto& c) { return c.next(); });
    all.compiles<config_value<int>>("config_value.hpp ready", [](auto& c) { return c.ready(); });
    all.compiles<config_value<int>>("config_value.hpp initialize", [](auto& c) { return c.initialize(1); });
    all.compiles<config_value<int>>("config_value.hpp set", [](auto& c) { return c.set(1); });
    all.compiles<config_value<int>>("config_value.hpp update", [](auto& c) { return c.update(same_number); });
    all.compiles<config_value<int>>("config_value.hpp close", [](auto& c) { return c.close(); });
}

void list_counters(token_list& all) {
    all.compiles<atomic_counter>("atomic_counter.hpp get", [](auto& c) { return c.get(); });
    all.compiles<atomic_counter>("atomic_counter.hpp add", [](auto& c) { return c.add(1); });
    all.compiles<atomic_counter>("atomic_counter.hpp compare_and_set", [](auto& c) { return c.compare_and_set(1, 2); });
    all.compiles<atomic_counter>("atomic_counter.hpp initialize", [](auto& c) { return c.initialize(1); });
    all.compiles<id_allocator>("id_allocator.hpp next", [](auto& i) { return i.next(); });
    all.compiles<unit>("transact.hpp get", [](auto& u) { return u.get("/a"); });
    all.compiles<unit>("transact.hpp get_all", [](auto& u) { return u.get_all({}); });
    all.compiles<work_queue>("work_queue.hpp put", [](auto& q) { return q.put("a"); });
    all.compiles<work_queue>("work_queue.hpp put_all", [](auto& q) { return q.put_all({}); });
    all.compiles<work_queue>("work_queue.hpp create", [](auto& q) { return q.create(); });
    all.compiles<work_queue>("work_queue.hpp take", [](auto& q) { return q.take(); });
    all.compiles<work_queue>("work_queue.hpp try_take", [](auto& q) { return q.try_take(); });
    all.compiles<work_queue>("work_queue.hpp receive", [](auto& q) { return q.receive(); });
    all.compiles<work_queue>("work_queue.hpp consume", [](auto& q) { return q.consume(job_of); });
    all.compiles<work_queue>("work_queue.hpp info", [](auto& q) { return q.info(); });
    all.compiles<work_queue>("work_queue.hpp dead", [](auto& q) { return q.dead(); });
    all.compiles<work_queue>("work_queue.hpp revive", [](auto& q) { return q.revive("a"); });
    all.compiles<delivery>("delivery.hpp lost", [](auto& d) { return d.lost(); });
    all.compiles<delivery>("delivery.hpp run", [](auto& d) { return d.run(nothing); });
    all.compiles<delivery>("delivery.hpp done", [](auto& d) { return d.done(); });
    all.compiles<delivery>("delivery.hpp again", [](auto& d) { return d.again(); });
    all.compiles<delivery>("delivery.hpp reject", [](auto& d) { return d.reject("a"); });
    all.compiles<barrier>("barrier.hpp set", [](auto& b) { return b.set(); });
    all.compiles<barrier>("barrier.hpp remove", [](auto& b) { return b.remove(); });
    all.compiles<barrier>("barrier.hpp is_set", [](auto& b) { return b.is_set(); });
    all.compiles<barrier>("barrier.hpp wait", [](auto& b) { return b.wait(); });
    all.compiles<double_barrier>("double_barrier.hpp enter", [](auto& b) { return b.enter(); });
    all.compiles<double_barrier>("double_barrier.hpp run", [](auto& b) { return b.run(inside); });
    all.compiles<barrier_entry>("double_barrier.hpp lost", [](auto& e) { return e.lost(); });
    all.compiles<barrier_entry>("double_barrier.hpp leave", [](auto& e) { return e.leave(); });
    all.compiles<latch>("latch.hpp count_down", [](auto& l) { return l.count_down("a"); });
    all.compiles<latch>("latch.hpp remaining", [](auto& l) { return l.remaining(); });
    all.compiles<latch>("latch.hpp wait", [](auto& l) { return l.wait(); });
}

void list_operations(token_list& all) {
    all.compiles<operations>("operations.hpp create", [](auto& o) { return o.create("/a"); });
    all.compiles<operations>("operations.hpp create_unless_exists",
                             [](auto& o) { return o.create_unless_exists("/a"); });
    all.compiles<operations>("operations.hpp create_or_set", [](auto& o) { return o.create_or_set("/a", ""); });
    all.compiles<operations>("operations.hpp get", [](auto& o) { return o.get("/a"); });
    all.compiles<operations>("operations.hpp set", [](auto& o) { return o.set("/a", ""); });
    all.compiles<operations>("operations.hpp exists", [](auto& o) { return o.exists("/a"); });
    all.compiles<operations>("operations.hpp children", [](auto& o) { return o.children("/a"); });
    all.compiles<operations>("operations.hpp remove", [](auto& o) { return o.remove("/a"); });
    all.compiles<operations>("operations.hpp remove_recursive", [](auto& o) { return o.remove_recursive("/a"); });
    all.compiles<operations>("operations.hpp multi", [](auto& o) { return o.multi(transaction()); });
    all.compiles<operations>("operations.hpp multi_read", [](auto& o) { return o.multi_read(read_list()); });
    all.compiles<operations>("operations.hpp who_am_i", [](auto& o) { return o.who_am_i(); });
    all.compiles<operations>("operations.hpp ephemerals", [](auto& o) { return o.ephemerals(); });
    all.compiles<operations>("operations.hpp count_below", [](auto& o) { return o.count_below("/a"); });
    all.compiles<operations>("operations.hpp sync", [](auto& o) { return o.sync(); });
    all.compiles<operations>("operations.hpp get_acl", [](auto& o) { return o.get_acl("/a"); });
    all.compiles<operations>("operations.hpp set_acl", [](auto& o) { return o.set_acl("/a", open_acl()); });
    all.compiles<operations>("operations.hpp get_and_watch", [](auto& o) { return o.get_and_watch("/a"); });
    all.compiles<operations>("operations.hpp exists_and_watch", [](auto& o) { return o.exists_and_watch("/a"); });
    all.compiles<operations>("operations.hpp children_and_watch", [](auto& o) { return o.children_and_watch("/a"); });
    all.compiles<operations>("operations.hpp get_config", [](auto& o) { return o.get_config(); });
    all.compiles<operations>("operations.hpp add_watch",
                             [](auto& o) { return o.add_watch("/a", watch_mode::recursive); });
    all.compiles<operations>("operations.hpp config_and_watch", [](auto& o) { return o.config_and_watch(); });
    all.compiles<operations>("operations.hpp reconfigure", [](auto& o) { return o.reconfigure("", ""); });
    all.compiles<toolbox>("toolbox.hpp connected", [](auto& t) { return t.connected("", ""); });
    all.compiles<toolbox>("toolbox.hpp current_session", [](auto& t) { return t.current_session("", ""); });
    all.compiles<toolbox>("toolbox.hpp own_session", [](auto& t) { return t.own_session("", ""); });
    all.compiles<toolbox>("toolbox.hpp orphan_at", [](auto& t) { return t.orphan_at("/a"); });
    all.compiles<toolbox>("toolbox.hpp multi_behind", [](auto& t) { return t.multi_behind({}, transaction(), ""); });
    all.compiles<toolbox>("toolbox.hpp find_protected", [](auto& t) { return t.find_protected("/a", ""); });
    all.compiles<toolbox>("toolbox.hpp find_all_protected", [](auto& t) { return t.find_all_protected("/a", {}); });
}

// What lockable and shared_mutex have in common.
template <class Lock>
void list_lock(token_list& all, const std::string& header) {
    all.compiles<Lock>(header + " acquire", [](auto& l) { return l.acquire(); });
    all.compiles<Lock>(header + " try_acquire", [](auto& l) { return l.try_acquire(); });
    all.compiles<Lock>(header + " try_acquire_for", [](auto& l) { return l.try_acquire_for(1h); });
    all.compiles<Lock>(header + " try_acquire_until", [](auto& l) { return l.try_acquire_until({}); });
    all.compiles<Lock>(header + " with_lock", [](auto& l) { return l.with_lock(guarded_work); });
}

void list_locks(token_list& all) {
    list_lock<mutex>(all, "lockable.hpp");
    list_lock<shared_mutex>(all, "shared_mutex.hpp");
    all.compiles<mutex>("mutex.hpp contenders", [](auto& l) { return l.contenders(); });
    all.compiles<cohort_mutex>("cohort_mutex.hpp contenders", [](auto& l) { return l.contenders(); });
    all.compiles<unfair_mutex>("unfair_mutex.hpp holder", [](auto& l) { return l.holder(); });
    all.compiles<shared_mutex>("shared_mutex.hpp acquire_shared", [](auto& l) { return l.acquire_shared(); });
    all.compiles<shared_mutex>("shared_mutex.hpp try_acquire_shared", [](auto& l) { return l.try_acquire_shared(); });
    all.compiles<shared_mutex>("shared_mutex.hpp try_acquire_shared_for",
                               [](auto& l) { return l.try_acquire_shared_for(1h); });
    all.compiles<shared_mutex>("shared_mutex.hpp try_acquire_shared_until",
                               [](auto& l) { return l.try_acquire_shared_until({}); });
    all.compiles<shared_mutex>("shared_mutex.hpp downgrade", [](auto& l) { return l.downgrade(lock_guard()); });
    all.compiles<shared_mutex>("shared_mutex.hpp with_shared_lock",
                               [](auto& l) { return l.with_shared_lock(guarded_work); });
    all.compiles<shared_mutex>("shared_mutex.hpp contenders", [](auto& l) { return l.contenders(); });
    all.compiles<semaphore>("semaphore.hpp acquire", [](auto& s) { return s.acquire(); });
    all.compiles<semaphore>("semaphore.hpp acquire_each", [](auto& s) { return s.acquire_each(2); });
    all.compiles<semaphore>("semaphore.hpp try_acquire", [](auto& s) { return s.try_acquire(); });
    all.compiles<semaphore>("semaphore.hpp try_acquire_for", [](auto& s) { return s.try_acquire_for(1h); });
    all.compiles<semaphore>("semaphore.hpp try_acquire_until", [](auto& s) { return s.try_acquire_until({}); });
    all.compiles<semaphore>("semaphore.hpp with_permit", [](auto& s) { return s.with_permit(guarded_work); });
    all.compiles<semaphore>("semaphore.hpp holders", [](auto& s) { return s.holders(); });
    all.compiles<semaphore>("semaphore.hpp waiting", [](auto& s) { return s.waiting(); });
    all.compiles<lock_guard>("lock_guard.hpp lost", [](auto& g) { return g.lost(); });
    all.compiles<lock_guard>("lock_guard.hpp commit", [](auto& g) { return g.commit(transaction()); });
    all.compiles<lock_guard>("lock_guard.hpp run", [](auto& g) { return g.run(nothing); });
    all.compiles<lock_guard>("lock_guard.hpp lease_extended", [](auto& g) { return g.lease_extended({}); });
    all.compiles<lock_guard>("lock_guard.hpp revoke_requested", [](auto& g) { return g.revoke_requested(); });
    all.compiles<lock_guard>("lock_guard.hpp release", [](auto& g) { return g.release(); });
    all.compiles<lock_claim>("lock_claim.hpp gone", [](auto& c) { return c.gone(); });
    all.compiles<client>("lock_owner.hpp acquire",
                         [](auto& c) { return lock_owner().acquire(c, "", "", lock_kind::shared, no_claim_at_all); });
    all.compiles<client>("lock_owner.hpp try_acquire", [](auto& c) {
        return lock_owner().try_acquire(c, "", "", lock_kind::shared, no_claim_at_all);
    });
}

void list_elections(token_list& all) {
    all.compiles<leader_election>("leader_election.hpp campaign", [](auto& e) { return e.campaign(); });
    all.compiles<leader_election>("leader_election.hpp try_campaign", [](auto& e) { return e.try_campaign(); });
    all.compiles<leader_election>("leader_election.hpp try_campaign_for",
                                  [](auto& e) { return e.try_campaign_for(1h); });
    all.compiles<leader_election>("leader_election.hpp try_campaign_until",
                                  [](auto& e) { return e.try_campaign_until({}); });
    all.compiles<leader_election>("leader_election.hpp lead", [](auto& e) { return e.lead(leading_work); });
    all.compiles<leader_election>("leader_election.hpp candidates", [](auto& e) { return e.candidates(); });
    all.compiles<leadership>("leader_election.hpp lost", [](auto& l) { return l.lost(); });
    all.compiles<leadership>("leader_election.hpp commit", [](auto& l) { return l.commit(transaction()); });
    all.compiles<leadership>("leader_election.hpp proclaim", [](auto& l) { return l.proclaim(""); });
    all.compiles<leadership>("leader_election.hpp run", [](auto& l) { return l.run(nothing); });
    all.compiles<leadership>("leader_election.hpp resign", [](auto& l) { return l.resign(); });
    all.compiles<leader_observer>("leader_observer.hpp next", [](auto& o) { return o.next(); });
    all.compiles<candidate>("candidate.hpp next", [](auto& c) { return c.next(); });
    all.compiles<candidate>("candidate.hpp run", [](auto& c) { return c.run(led_work); });
    all.compiles<candidate>("candidate.hpp step_down", [](auto& c) { return c.step_down(); });
    all.compiles<candidate>("candidate.hpp close", [](auto& c) { return c.close(); });
}

void list_members(token_list& all) {
    using node = persistent_node;
    all.compiles<node>("persistent_node.hpp created", [](auto& n) { return n.created(); });
    all.compiles<node>("persistent_node.hpp set_data", [](auto& n) { return n.set_data(""); });
    all.compiles<node>("persistent_node.hpp state_after", [](auto& n) { return n.state_after(n.state()); });
    all.compiles<node>("persistent_node.hpp ended", [](auto& n) { return n.ended(); });
    all.compiles<node>("persistent_node.hpp leave", [](auto& n) { return n.leave(); });
    all.compiles<group>("group.hpp join", [](auto& g) { return g.join("me"); });
    all.compiles<group>("group.hpp members", [](auto& g) { return g.members(); });
    using member = group_membership;
    all.compiles<member>("group.hpp set_data", [](auto& m) { return m.set_data(""); });
    all.compiles<member>("group.hpp state_after", [](auto& m) { return m.state_after(m.state()); });
    all.compiles<member>("group.hpp ended", [](auto& m) { return m.ended(); });
    all.compiles<member>("group.hpp leave", [](auto& m) { return m.leave(); });
    all.compiles<group_observer>("group.hpp ready", [](auto& o) { return o.ready(); });
    all.compiles<group_observer>("group.hpp next", [](auto& o) { return o.next(); });
    all.compiles<group_observer>("group.hpp settled", [](auto& o) { return o.settled(0ns); });
    all.compiles<partitioner>("partitioner.hpp run", [](auto& p) { return p.run(partition_work_of); });
    all.compiles<held_partition>("partitioner.hpp lost", [](auto& p) { return p.lost(); });
    all.compiles<held_partition>("partitioner.hpp commit", [](auto& p) { return p.commit(transaction()); });
}

void list_free_functions(token_list& all) {
    all.compiles<client>("list_lock", [](auto& c) { return list_lock(c, "/a"); });
    all.compiles<client>("revoke", [](auto& c) { return revoke(c, "/a"); });
    all.compiles<mutex>("with_lock", [](auto& m) { return with_lock(m.acquire(), guarded_work); });
    all.compiles<client>("run_with_deadline", [](auto&) { return run_with_deadline({}, nothing); });
    all.compiles<client>("modify", [](auto& c) { return modify(c, "/a", same_data); });
    all.compiles<client>("transact", [](auto& c) { return transact(c, within_unit); });
    all.compiles<client>("with_task_scope", [](auto&) { return with_task_scope(within_scope); });
    all.compiles<client>("timeout", [](auto& c) { return timeout(1s, c.current_session()); });
    all.compiles<client>("as_result", [](auto& c) { return as_result(c.current_session()); });
}

}  // namespace

TEST_CASE("tokens: every operation fails in order with completion tokens", "[tokens][leaves]") {
    token_list all;
    list_sessions(all);
    list_counters(all);
    list_operations(all);
    list_caches(all);
    list_locks(all);
    list_elections(all);
    list_members(all);
    list_free_functions(all);

    check_tokens<void, bool, std::string, lock_guard, std::optional<lock_guard>, leadership>(all);
    CHECK(all.checks().size() > 20);
    const std::vector<std::string> elsewhere = public_awaitable_members("discovery");  // discovery_tokens_list_test.cpp
    for (const std::string& name : public_awaitable_members()) {
        INFO(name);
        CHECK((all.has(name) || std::find(elsewhere.begin(), elsewhere.end(), name) != elsewhere.end()));
    }
}
