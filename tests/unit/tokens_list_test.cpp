// Every operation can be given to asio::co_spawn with every completion token.
#include "unit/awaitable_members.hpp"
#include "unit/error_of.hpp"
#include "unit/rig.hpp"

#include <zkasio/as_result.hpp>
#include <zkasio/cache/children_stream.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/cache/value_stream.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/deadline.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/node_follower.hpp>
#include <zkasio/session_loop.hpp>
#include <zkasio/task_scope.hpp>
#include <zkasio/timeout.hpp>

#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/redirect_error.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <future>
#include <set>
#include <type_traits>

using namespace zkasio;
using namespace zkasio::test;

namespace {

template <class T>
asio::awaitable<T> refused_operation() {
    throw error(zk_errc::no_auth, "get", "/a");
    co_return T();  // asio::co_spawn makes such a one, too, when the operation has failed
}
template <>
asio::awaitable<void> refused_operation<void>() {
    throw error(zk_errc::no_auth, "get", "/a");
    co_return;
}

template <class T, class Token>
auto spawn_on(asio::any_io_executor executor, Token&& token) {
    return asio::co_spawn(executor, refused_operation<T>(), std::forward<Token>(token));
}

std::error_code code_in(std::exception_ptr e) {
    try {
        std::rethrow_exception(e);
    } catch (const error& failed) {
        return failed.code();
    }
}

// An operation that fails, with each token: how often the failure has arrived. The result type is all that matters to
// Asio.
template <class T>
asio::awaitable<int> failures_by_token(asio::any_io_executor loop, asio::any_io_executor other) {
    int failed = 0;
    const auto count = [&failed](std::exception_ptr e) { failed += code_in(e) == zk_errc::no_auth; };
    spawn_on<T>(loop, asio::detached);
    auto future = spawn_on<T>(loop, asio::use_future);
    if constexpr (std::is_void_v<T>) {
        spawn_on<T>(loop, [count](std::exception_ptr e) { count(e); });
        const auto result = co_await spawn_on<T>(loop, asio::experimental::as_tuple(asio::use_awaitable));
        count(std::get<0>(result));
    } else {
        spawn_on<T>(loop, [count](std::exception_ptr e, T) { count(e); });
        const auto result = co_await spawn_on<T>(loop, asio::experimental::as_tuple(asio::use_awaitable));
        count(std::get<0>(result));
    }
    try {
        (void)co_await spawn_on<T>(other, asio::use_awaitable);
    } catch (...) {
        count(std::current_exception());
    }
    // The error is an exception, not a code: asio::redirect_error has nothing to redirect.
    std::error_code redirected;
    try {
        (void)co_await spawn_on<T>(loop, asio::redirect_error(asio::use_awaitable, redirected));
    } catch (...) {
        if (!redirected) count(std::current_exception());
    }
    try {
        (void)future.get();  // what was spawned before it has ended by now
    } catch (...) {
        count(std::current_exception());
    }
    co_return failed;
}

using token_check = asio::awaitable<int> (*)(asio::any_io_executor, asio::any_io_executor);

// The result types of all operations, by what returns them.
class token_list {
public:
    /// @param call(handle) is never called: only its type counts.
    template <class Handle, class Call>
    void compiles(std::string header_and_name, Call) {
        using result = typename std::invoke_result_t<Call, Handle&>::value_type;
        checks_.insert(&failures_by_token<result>);
        names_.insert(std::move(header_and_name));
    }
    const std::set<token_check>& checks() const { return checks_; }
    bool has(const std::string& header_and_name) const { return names_.contains(header_and_name); }

private:
    std::set<token_check> checks_;
    std::set<std::string> names_;
};

asio::awaitable<void> guarded_work(lock_guard&) { co_return; }
asio::awaitable<void> leading_work(leadership&) { co_return; }
int same_number(int n) { return n; }
asio::awaitable<void> partition_work_of(held_partition&) { co_return; }
asio::awaitable<void> within_session(session) { co_return; }
asio::awaitable<void> within_scope(task_scope&) { co_return; }
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
    all.compiles<session_events>("client.hpp next", [](auto& e) { return e.next(); });
    all.compiles<session>("session.hpp ended", [](auto& s) { return s.ended(); });
    all.compiles<session_hold>("session.hpp confirmed", [](auto& h) { return h.confirmed(); });
    all.compiles<session_hold>("session.hpp lost", [](auto& h) { return h.lost(); });
    all.compiles<session_hold>("session.hpp run", [](auto& h) { return h.run(nothing); });
    all.compiles<session_loop>("session_loop.hpp stopped", [](auto& l) { return l.stopped(); });
    all.compiles<watch>("watch.hpp changed", [](auto& w) { return w.changed(); });
    all.compiles<one_shot_event>("one_shot_event.hpp wait", [](auto& e) { return e.wait(); });
    all.compiles<one_shot_event>("one_shot_event.hpp run_until", [](auto& e) { return e.run_until(nothing); });
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
    all.compiles<cache_changes>("cache_changes.hpp next", [](auto& c) { return c.next(); });
    all.compiles<value_stream>("value_stream.hpp next", [](auto& s) { return s.next(); });
    all.compiles<value_stream>("value_stream.hpp close", [](auto& s) { return s.close(); });
    all.compiles<children_stream>("children_stream.hpp next", [](auto& s) { return s.next(); });
    all.compiles<children_stream>("children_stream.hpp close", [](auto& s) { return s.close(); });
    all.compiles<node_follower>("node_follower.hpp next", [](auto& f) { return f.next({}); });
    all.compiles<node_follower>("node_follower.hpp close", [](auto& f) { return f.close(); });
    all.compiles<config_changes<int>>("config_value.hpp next", [](auto& c) { return c.next(); });
    all.compiles<config_value<int>>("config_value.hpp ready", [](auto& c) { return c.ready(); });
    all.compiles<config_value<int>>("config_value.hpp set", [](auto& c) { return c.set(1); });
    all.compiles<config_value<int>>("config_value.hpp update", [](auto& c) { return c.update(same_number); });
    all.compiles<config_value<int>>("config_value.hpp close", [](auto& c) { return c.close(); });
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
    all.compiles<operations>("operations.hpp multi_behind",
                             [](auto& o) { return o.multi_behind({}, transaction(), ""); });
    all.compiles<operations>("operations.hpp sync", [](auto& o) { return o.sync(); });
    all.compiles<operations>("operations.hpp get_acl", [](auto& o) { return o.get_acl("/a"); });
    all.compiles<operations>("operations.hpp set_acl", [](auto& o) { return o.set_acl("/a", open_acl()); });
    all.compiles<operations>("operations.hpp get_and_watch", [](auto& o) { return o.get_and_watch("/a"); });
    all.compiles<operations>("operations.hpp exists_and_watch", [](auto& o) { return o.exists_and_watch("/a"); });
    all.compiles<operations>("operations.hpp children_and_watch", [](auto& o) { return o.children_and_watch("/a"); });
    all.compiles<operations>("operations.hpp get_config", [](auto& o) { return o.get_config(); });
    all.compiles<operations>("operations.hpp config_and_watch", [](auto& o) { return o.config_and_watch(); });
    all.compiles<operations>("operations.hpp reconfigure", [](auto& o) { return o.reconfigure("", ""); });
    all.compiles<operations>("operations.hpp find_protected", [](auto& o) { return o.find_protected("/a", ""); });
    all.compiles<operations>("operations.hpp find_all_protected",
                             [](auto& o) { return o.find_all_protected("/a", {}); });
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
    all.compiles<leadership>("leadership.hpp lost", [](auto& l) { return l.lost(); });
    all.compiles<leadership>("leadership.hpp commit", [](auto& l) { return l.commit(transaction()); });
    all.compiles<leadership>("leadership.hpp proclaim", [](auto& l) { return l.proclaim(""); });
    all.compiles<leadership>("leadership.hpp run", [](auto& l) { return l.run(nothing); });
    all.compiles<leadership>("leadership.hpp resign", [](auto& l) { return l.resign(); });
    all.compiles<leader_observer>("leader_observer.hpp next", [](auto& o) { return o.next(); });
}

void list_discovery(token_list& all) {
    all.compiles<registry>("registry.hpp announce", [](auto& r) { return r.announce(service_instance("s")); });
    all.compiles<registry>("registry.hpp names", [](auto& r) { return r.names(); });
    all.compiles<registry>("registry.hpp instances", [](auto& r) { return r.instances("s"); });
    all.compiles<announcement>("announcement.hpp update", [](auto& a) { return a.update(service_instance("s")); });
    all.compiles<announcement>("announcement.hpp withdraw", [](auto& a) { return a.withdraw(); });
    all.compiles<announcement>("announcement.hpp ended", [](auto& a) { return a.ended(); });
    all.compiles<provider>("provider.hpp pick", [](auto& p) { return p.pick(); });
    all.compiles<provider>("provider.hpp pick_for", [](auto& p) { return p.pick_for("key"); });
    all.compiles<provider>("provider.hpp ready", [](auto& p) { return p.ready(); });
    all.compiles<provider>("provider.hpp changed", [](auto& p) { return p.changed(p.view()); });
    all.compiles<provider>("provider.hpp close", [](auto& p) { return p.close(); });
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
    all.compiles<member>("group_membership.hpp set_data", [](auto& m) { return m.set_data(""); });
    all.compiles<member>("group_membership.hpp state_after", [](auto& m) { return m.state_after(m.state()); });
    all.compiles<member>("group_membership.hpp ended", [](auto& m) { return m.ended(); });
    all.compiles<member>("group_membership.hpp leave", [](auto& m) { return m.leave(); });
    all.compiles<group_observer>("group_observer.hpp ready", [](auto& o) { return o.ready(); });
    all.compiles<group_observer>("group_observer.hpp next", [](auto& o) { return o.next(); });
    all.compiles<partitioner>("partitioner.hpp run", [](auto& p) { return p.run(partition_work_of); });
    all.compiles<held_partition>("held_partition.hpp lost", [](auto& p) { return p.lost(); });
    all.compiles<held_partition>("held_partition.hpp commit", [](auto& p) { return p.commit(transaction()); });
}

void list_free_functions(token_list& all) {
    all.compiles<client>("revoke", [](auto& c) { return revoke(c, "/a"); });
    all.compiles<mutex>("with_lock", [](auto& m) { return with_lock(m.acquire(), guarded_work); });
    all.compiles<client>("run_with_deadline", [](auto&) { return run_with_deadline({}, nothing); });
    all.compiles<client>("with_task_scope", [](auto&) { return with_task_scope(within_scope); });
    all.compiles<client>("timeout", [](auto& c) { return timeout(1s, c.current_session()); });
    all.compiles<client>("as_result", [](auto& c) { return as_result(c.current_session()); });
}

}  // namespace

TEST_CASE("tokens: every operation fails in order with every completion token", "[tokens]") {
    token_list all;
    list_sessions(all);
    list_operations(all);
    list_caches(all);
    list_locks(all);
    list_elections(all);
    list_discovery(all);
    list_members(all);
    list_free_functions(all);

    test_loop loop;
    asio::thread_pool other(1);
    auto steps = [&]() -> asio::awaitable<void> {
        for (const token_check check : all.checks()) {
            const int failed = co_await check(loop.executor(), other.get_executor());
            CHECK(failed == 5);
        }
    };
    loop.run(steps());
    other.join();
    CHECK(all.checks().size() > 20);

    for (const std::string& name : public_awaitable_members()) {
        INFO(name);
        CHECK(all.has(name));
    }
}
