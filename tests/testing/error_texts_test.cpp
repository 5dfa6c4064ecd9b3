// What an error says: the operation that the caller has called, its path, and the reason.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/session_loop.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using zkasio::testing::fake_ensemble;

namespace {

template <class T>
std::string text_of(fake_ensemble& ensemble, asio::awaitable<T> operation) {
    return failure_of([&] {
        if constexpr (std::is_void_v<T>)
            ensemble.run(std::move(operation));
        else
            (void)ensemble.run(std::move(operation));
    });
}

asio::awaitable<void> body_of_candidate(const leadership&) { co_await sleep_for(1h); }

client_options without_renewal() { return sessions_of_ten_seconds().renewal(session_renewal::none); }

client moved_from_client(fake_ensemble& ensemble) {
    client from = ensemble.client(sessions_of_ten_seconds());
    const client to = std::move(from);
    return from;
}

}  // namespace

TEST_CASE("error texts: a limit in a pause of transact() names it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/n");
    int tries = 0;
    const auto body = [&](unit& u) -> asio::awaitable<void> {
        co_await u.get("/n");
        co_await other.set("/n", std::to_string(++tries));
        u.set("/n", "mine");
    };
    transact_options how;
    SECTION("after a conflict") {}
    SECTION("after a conflict, with receipts") { how.receipts("/receipts"); }
    for (int i = 0; i < 20; ++i) {
        const std::string text = text_of(ensemble, timeout(1s + i * 37ms, transact(zk, body, how)));
        INFO(text);
        CHECK_FALSE(has(text, "timeout"));
    }
}

TEST_CASE("error texts: a limit while transact() is repeated at servers that refuse names it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/n");
    const auto body = [&](unit& u) -> asio::awaitable<void> {
        u.set("/n", "mine");
        co_return;
    };
    ensemble.run(zk.connected());
    ensemble.throttle(100);
    for (int i = 0; i < 20; ++i) {
        const std::string text = text_of(ensemble, timeout(1s + i * 37ms, transact(zk, body)));
        INFO(text);
        CHECK(text.starts_with("transact: timed out"));
    }
}

TEST_CASE("error texts: a limit while modify() is repeated names it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/n");
    int tries = 0;
    const auto change = [&](std::optional<node_data>) {
        ensemble.set("/n", std::to_string(++tries));
        return std::optional<std::string>("mine");
    };
    for (int i = 0; i < 20; ++i) {
        const std::string text = text_of(ensemble, timeout(1s + i * 37ms, modify(zk, "/n", change)));
        INFO(text);
        CHECK_FALSE(has(text, "timeout"));
        CHECK(has(text, " /n: timed out"));
    }
}

TEST_CASE("error texts: a limit while lead() is repeated names it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const leader_election election(zk, "/election");
    const auto body = [](leadership&) -> asio::awaitable<void> {
        throw error(zk_errc::connection_loss, "get", "/a");
        co_return;
    };
    for (int i = 0; i < 20; ++i) {
        const std::string text = text_of(ensemble, timeout(1s + i * 37ms, election.lead(body)));
        INFO(text);
        CHECK_FALSE(has(text, "timeout"));
    }
}

TEST_CASE("error texts: a limit while hand_over() waits names it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const leadership first = ensemble.run(leader_election(other, "/election").campaign());
    const candidate second(zk, "/election");
    ensemble.run_for(1s);
    for (int i = 0; i < 10; ++i)
        CHECK(text_of(ensemble, timeout(1s + i * 37ms, zk.hand_over())) == "hand_over: timed out");
}

TEST_CASE("error texts: the work under a lock names the operation that runs it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock");
    const auto expires = [&]() -> asio::awaitable<void> {
        ensemble.expire(zk);
        co_await sleep_for(1h);
    };
    std::string node;
    SECTION("run()") {
        const lock_guard guard = ensemble.run(lock.acquire());
        const std::string lost = text_of(ensemble, guard.run(expires));
        CHECK(lost == "run " + guard.path() + ": lock lost (session expired)");
    }
    SECTION("with_lock()") {
        const auto body = [&](lock_guard& guard) {
            node = guard.path();
            return expires();
        };
        const std::string lost = text_of(ensemble, lock.with_lock(body));
        CHECK(lost == "with_lock " + node + ": lock lost (session expired)");
        const with_lock_options revocable(revocation_policy::cancel_after(1s));
        const std::string lost_again = text_of(ensemble, lock.with_lock(body, revocable));
        CHECK(lost_again == "with_lock " + node + ": lock lost (session expired)");
        const std::string margin = text_of(ensemble, lock.with_lock(body, with_lock_options().stop_margin(9s)));
        CHECK(margin.starts_with("with_lock /lock/"));
    }
    SECTION("lead()") {
        const leader_election election(zk, "/lock");
        const auto body = [&](leadership&) { return expires(); };
        const std::string margin = text_of(ensemble, election.lead(body, lead_options().stop_margin(9s)));
        CHECK(margin.starts_with("lead /lock/"));
    }
}

TEST_CASE("error texts: a limit on a notice of a guard names the notice", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const lock_guard guard = ensemble.run(mutex(zk, "/lock").acquire());
    CHECK(text_of(ensemble, timeout(1s, guard.lease_extended(boot_clock::time_point::max()))) ==
          "lease_extended " + guard.path() + ": timed out");
    CHECK(text_of(ensemble, timeout(1s, guard.revoke_requested())) ==
          "revoke_requested " + guard.path() + ": timed out");
    const session s = ensemble.run(zk.current_session());
    CHECK(text_of(ensemble, timeout(1s, s.lease_extended(boot_clock::time_point::max()))) ==
          "lease_extended: timed out");
}

TEST_CASE("error texts: what stands in the background names its path when the session ends", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(without_renewal());
    const candidate stands(zk, "/election");
    const provider orders(zk, "/base", "orders");
    const persistent_node node(zk, "/node");
    ensemble.run(stands.next());
    ensemble.run(orders.ready());
    ensemble.run(node.created());
    SECTION("it expires") {
        ensemble.expire(zk);
        ensemble.run_for(30s);
        REQUIRE(stands.status().state == candidate_state::ended);
        ensemble.run(stands.next());
        CHECK(text_of(ensemble, stands.next()) == "next /election: session expired");
        CHECK(text_of(ensemble, stands.run(&body_of_candidate)) == "run /election: session expired");
        CHECK(text_of(ensemble, orders.pick()) == "pick /base/orders: session expired");
        CHECK(text_of(ensemble, orders.changed(orders.view())) == "changed /base/orders: session expired");
        CHECK(text_of(ensemble, node.created()) == "created /node: session expired");
        CHECK(text_of(ensemble, node.set_data("x")) == "set_data /node: session expired");
        CHECK(text_of(ensemble, node.ended()) == "ended /node: session expired");
    }
    SECTION("the client is closed") {
        ensemble.run(zk.close());
        ensemble.run(stands.next());
        CHECK(text_of(ensemble, stands.next()) == "next /election: client closed");
        CHECK(text_of(ensemble, stands.run(&body_of_candidate)) == "run /election: client closed");
        CHECK(text_of(ensemble, orders.pick()) == "pick /base/orders: client closed");
        CHECK(text_of(ensemble, node.created()) == "created /node: client closed");
        CHECK(text_of(ensemble, node.ended()) == "ended /node: client closed");
    }
}

TEST_CASE("error texts: an observer of an election names the election", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const leader_observer observer = leader_election(zk, "/election").observe();
    ensemble.run(observer.next());
    for (int i = 0; i < 5; ++i)
        CHECK(text_of(ensemble, timeout(1s + i * 37ms, observer.next())) == "observe /election: timed out");
    ensemble.run(zk.close());
    const std::string closed = text_of(ensemble, observer.next());
    CHECK(closed == "observe /election: client closed");
}

TEST_CASE("error texts: a wait for a barrier or a latch names it", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/barrier");
    CHECK(text_of(ensemble, timeout(3s, barrier(zk, "/barrier").wait())) == "wait /barrier: timed out");
    CHECK(text_of(ensemble, timeout(3s, latch(zk, "/latch", 1).wait())) == "wait /latch: timed out");
}

TEST_CASE("error texts: refused arguments and data name the path", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    ensemble.create("/base/orders/bad", "no JSON");
    CHECK(text_of(ensemble, registry(zk, "/base").instance("orders", "bad"))
              .starts_with("instance /base/orders/bad: invalid argument (no instance: "));
    CHECK(failure_of([&] { (void)semaphore(zk, "/sem", permits::fixed(0)); }) ==
          "semaphore /sem: invalid argument (it takes at least one permit)");
    CHECK(text_of(ensemble, semaphore(zk, "/sem", permits::counted_by("/howmany")).acquire()) ==
          "acquire /sem: no such node (the node of permits::counted_by() has the number of its permits)");
    const work_queue queue(zk, "/queue");
    CHECK(text_of(ensemble, queue.put("x", put_options().priority(1000))) ==
          "put /queue: invalid argument (a priority is a number from 0 to 999)");
    CHECK(text_of(ensemble, queue.put_all({"x"}, put_options().id("a"))) ==
          "put /queue: invalid argument (the items of this queue's layout have no id)");
    transaction steps;
    CHECK(failure_of([&] { queue.put_with(steps, "x", put_options().priority(1000)); }) ==
          "put_with /queue: invalid argument (a priority is a number from 0 to 999)");
}

TEST_CASE("error texts: recipes over a client that was moved from name themselves", "[testing]") {
    fake_ensemble ensemble;
    const client gone = moved_from_client(ensemble);
    const std::string why = ": invalid argument (this object was moved from)";
    CHECK(failure_of([&] { candidate c(gone, "/a"); }) == "candidate /a" + why);
    CHECK(failure_of([&] { persistent_node n(gone, "/a"); }) == "persistent_node /a" + why);
    CHECK(failure_of([&] { tree_cache c(gone, "/a"); }) == "cache /a" + why);
    CHECK(failure_of([&] { provider p(gone, "/a", "b"); }) == "provider /a/b" + why);
    CHECK(failure_of([&] { (void)watch_value(gone, "/a"); }) == "watch_value /a" + why);
    CHECK(text_of(ensemble, group(gone, "/a").join("b")) == "join /a/b" + why);
    const auto under_partition = [](held_partition&) -> asio::awaitable<void> { co_return; };
    std::vector<std::string> names{"b"};
    CHECK(text_of(ensemble, partitioner(gone, "/a", names).run(under_partition)).starts_with("partitioner /a/party/"));
    CHECK(text_of(ensemble, barrier(gone, "/a").wait()) == "wait /a" + why);
    CHECK(text_of(ensemble, latch(gone, "/a", 1).wait()) == "wait /a" + why);
    CHECK(text_of(ensemble, id_allocator(gone, "/a").next()) == "next /a" + why);
    CHECK(failure_of([&] { (void)id_allocator(gone, "/a").try_next(); }) == "try_next /a" + why);
    CHECK(text_of(ensemble, leader_election(gone, "/a").observe().next()) == "observe /a" + why);
}

namespace {

const std::string not_allowed =
    ": no permission (the ACL does not allow it to this client: see get_acl() and add_auth())";

asio::awaitable<void> of_partition(held_partition&) { co_await sleep_for(1h); }
asio::awaitable<void> of_item(delivery&) { co_await sleep_for(1h); }
asio::awaitable<void> of_leader(leadership&) { co_await sleep_for(1h); }

partitioner one_partition(const client& zk) {
    return partitioner(zk, "/p", std::vector<std::string>{"one"}, partitioner_options().id("me").settle(1s));
}

}  // namespace

TEST_CASE("error texts: a refused request of a recipe names the caller's operation, and the node", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const work_queue queue(zk, "/q");
    const atomic_counter counter(zk, "/c");
    ensemble.create("/t");
    ensemble.create("/q");
    for (const char* path : {"/q/later", "/q/taken", "/q/receipts", "/c", "/r", "/i", "/b", "/s", "/m", "/p/locks"})
        ensemble.refuse(path, zk_errc::no_auth);
    const auto body = [](unit& u) -> asio::awaitable<void> {
        u.set("/t", "1");
        co_return;
    };
    CHECK(text_of(ensemble, queue.consume(&of_item)) == "consume /q/later" + not_allowed);
    CHECK(text_of(ensemble, queue.receive()) == "receive /q/later" + not_allowed);
    CHECK(text_of(ensemble, queue.take()) == "take /q/later" + not_allowed);
    CHECK(text_of(ensemble, queue.put("x")).starts_with("put /q/receipts"));
    CHECK(text_of(ensemble, counter.add(1)) == "add /c" + not_allowed);
    CHECK(text_of(ensemble, counter.compare_and_set(1, 2)) == "compare_and_set /c" + not_allowed);
    CHECK(text_of(ensemble, id_allocator(zk, "/i").next()) == "next /i" + not_allowed);
    CHECK(text_of(ensemble, transact(zk, body, transact_options().receipts("/r"))).starts_with("transact /r/_r-"));
    CHECK(text_of(ensemble, double_barrier(zk, "/b", 2).enter()) == "enter /b/ready" + not_allowed);
    CHECK(text_of(ensemble, slots(zk, "/s", 2).acquire()) == "acquire /s" + not_allowed);
    const leader_election election(zk, "/m");
    CHECK(text_of(ensemble, mutex(zk, "/m").acquire()).starts_with("acquire /m/_c_"));
    CHECK(text_of(ensemble, cohort_mutex(zk, "/m").acquire()).starts_with("acquire /m/_c_"));
    CHECK(text_of(ensemble, election.campaign()).starts_with("campaign /m/_c_"));
    CHECK(text_of(ensemble, election.lead(&of_leader)).starts_with("lead /m/_c_"));
    const partitioner refused = one_partition(zk);
    CHECK(text_of(ensemble, refused.run(&of_partition)).starts_with("partitioner /p/locks/one/"));
    ensemble.refuse("/p/party", zk_errc::no_auth);
    const std::string no_member = text_of(ensemble, refused.run(&of_partition));
    CHECK(no_member.starts_with("partitioner /p/party/"));
    CHECK(has(no_member, "me: no permission (create: "));
}

TEST_CASE("error texts: a small operation of a recipe names itself, too", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const work_queue queue(zk, "/q");
    for (const char* path : {"/q", "/q/taken", "/q/dead", "/q/entries", "/c", "/n", "/e", "/g"})
        ensemble.refuse(path, zk_errc::no_auth);
    CHECK(text_of(ensemble, queue.info()) == "info /q/taken" + not_allowed);
    CHECK(text_of(ensemble, queue.dead()) == "dead /q/dead" + not_allowed);
    CHECK(text_of(ensemble, queue.create()).starts_with("create /q"));
    CHECK(text_of(ensemble, atomic_counter(zk, "/c").initialize(1)) == "initialize /c" + not_allowed);
    CHECK(text_of(ensemble, next_number(zk, "/n")) == "next_number /n" + not_allowed);
    const candidate stands(zk, "/e");
    CHECK(text_of(ensemble, stands.run(&body_of_candidate)).starts_with("run /e/_c_"));
    ensemble.run(stands.next());
    CHECK(text_of(ensemble, stands.next()).starts_with("next /e/_c_"));
    const std::string no_member = text_of(ensemble, group(zk, "/g").join("me"));
    CHECK(no_member.starts_with("join /g/me: no permission (create: "));
}

namespace {

asio::awaitable<void> list_lock_at(client zk) { (void)co_await list_lock(zk, "/x"); }

}  // namespace

// One request is refused, of each operation that only reads, or writes once.
TEST_CASE("error texts: what the operations of recipes say of a refused request", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const leader_election election(zk, "/x");
    const barrier gate(zk, "/x");
    const latch three(zk, "/x", 3);
    const registry services(zk, "/x");
    const std::vector<std::pair<std::string, std::function<std::string()>>> ways{
        {"contenders", [&] { return text_of(ensemble, mutex(zk, "/x").contenders()); }},
        {"contenders", [&] { return text_of(ensemble, shared_mutex(zk, "/x").contenders()); }},
        {"contenders", [&] { return text_of(ensemble, cohort_mutex(zk, "/x").contenders()); }},
        {"candidates", [&] { return text_of(ensemble, election.candidates()); }},
        {"holders", [&] { return text_of(ensemble, semaphore(zk, "/x", permits::fixed(2)).holders()); }},
        {"waiting", [&] { return text_of(ensemble, semaphore(zk, "/x", permits::fixed(2)).waiting()); }},
        {"holder", [&] { return text_of(ensemble, unfair_mutex(zk, "/x").holder()); }},
        {"list_lock", [&] { return text_of(ensemble, list_lock_at(zk)); }},
        {"revoke", [&] { return text_of(ensemble, revoke(zk, "/x/_c_1")); }},
        {"set", [&] { return text_of(ensemble, gate.set()); }},
        {"remove", [&] { return text_of(ensemble, gate.remove()); }},
        {"count_down", [&] { return text_of(ensemble, three.count_down("a")); }},
        {"remaining", [&] { return text_of(ensemble, three.remaining()); }},
        {"wait", [&] { return text_of(ensemble, three.wait()); }},
        {"names", [&] { return text_of(ensemble, services.names()); }},
        {"instances", [&] { return text_of(ensemble, services.instances("s")); }},
        {"instance", [&] { return text_of(ensemble, services.instance("s", "i")); }},
        {"announce", [&] { return text_of(ensemble, services.announce(service_instance("s"))); }},
        {"members", [&] { return text_of(ensemble, group(zk, "/x").members()); }},
        {"get", [&] { return text_of(ensemble, atomic_counter(zk, "/x").get()); }},
        {"dead", [&] { return text_of(ensemble, work_queue(zk, "/x").dead()); }},
        {"revive", [&] { return text_of(ensemble, work_queue(zk, "/x").revive("item-0000000000-1")); }},
    };
    for (const char* path : {"/x", "/x/locks", "/x/leases", "/x/_c_1", "/x/a", "/x/s", "/x/s/i", "/x/dead",
                             "/x/dead/item-0000000000-1"})
        ensemble.refuse(path, zk_errc::no_auth);
    for (const auto& [operation, said] : ways) {
        const std::string text = said();
        CAPTURE(operation, text);
        CHECK(text.starts_with(operation + " /x"));
    }
}

TEST_CASE("error texts: the end of a delivery and of a guard's wait name themselves where a request is refused",
          "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const work_queue queue(zk, "/q");
    ensemble.run(queue.put("x"));
    delivery one = ensemble.run(queue.receive());
    const lock_guard guard = ensemble.run(mutex(zk, "/m").acquire());
    for (const std::string& path : ensemble.paths())
        if (path.starts_with("/q/receipts") || path.starts_with("/q/taken")) ensemble.refuse(path, zk_errc::no_auth);
    ensemble.refuse("/q/dead", zk_errc::no_auth);
    ensemble.refuse("/m", zk_errc::no_auth);
    CHECK(text_of(ensemble, one.done()).starts_with("done /q/"));
    CHECK(text_of(ensemble, one.reject("bad")).starts_with("reject /q/"));
    CHECK(text_of(ensemble, one.again()).starts_with("again /q/"));
    CHECK(text_of(ensemble, guard.revoke_requested()).starts_with("revoke_requested /m"));
}

TEST_CASE("error texts: join() and created() say why there is no node yet", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const group workers(zk, "/g");
    SECTION("another client's node stands there") {
        const group_membership theirs = ensemble.run(group(other, "/g").join("me"));
        CHECK(text_of(ensemble, timeout(3s, workers.join("me"))) ==
              "join /g: timed out (the node /g/me is another client's)");
        const persistent_node node(zk, "/g/me");
        CHECK(text_of(ensemble, timeout(3s, node.created())) ==
              "created /g/me: timed out (the node /g/me is another client's)");
    }
    SECTION("the last attempt has failed") {
        ensemble.run(zk.connected());
        ensemble.refuse("/g", zk_errc::throttled);
        CHECK(has(text_of(ensemble, timeout(3s, workers.join("me"))),
                  "join /g: timed out (the last attempt has failed: create /g/me: "));
    }
    SECTION("there is no connection") {
        ensemble.run(zk.connected());
        ensemble.hold_down(zk);
        ensemble.run_for(1s);
        CHECK(text_of(ensemble, timeout(3s, workers.join("me"))).starts_with("join /g: timed out (no connection: "));
    }
}

namespace {

// What the operation says when `cause` comes after each of its steps.
std::set<std::string> texts_at_each_step(const std::function<asio::awaitable<void>(const client&)>& operation,
                                         const std::function<void(fake_ensemble&, const client&, running&)>& cause) {
    std::set<std::string> texts;
    bool ended_before = false;
    for (std::size_t at = 0; !ended_before; ++at) {
        fake_ensemble ensemble;
        const client zk = ensemble.client(without_renewal());
        ensemble.run(zk.connected());
        ensemble.create("/t");
        ensemble.create("/c", "0");
        std::size_t steps = 0;
        std::optional<running> work;
        at_step(ensemble, steps, at, [&] { cause(ensemble, zk, *work); });
        work.emplace(ensemble.get_executor(), operation(zk));
        ensemble.run_for(5s);
        ended_before = steps <= at;
        REQUIRE(work->ended());
        const std::exception_ptr thrown = ensemble.run(work->end());
        if (thrown) texts.insert(failure_of([&] { std::rethrow_exception(thrown); }));
        ensemble.on_step(nullptr);
    }
    return texts;
}

atomic_counter as_kazoo(const client& zk) {
    return atomic_counter(zk, "/c", counter_options().format(kazoo_counter()));
}

template <class Operation>
asio::awaitable<void> without_result(Operation operation) {
    (void)co_await std::move(operation);
}

}  // namespace

TEST_CASE("error texts: the end of the client or a cancellation names the whole, at each step", "[testing]") {
    const auto body = [](unit& u) -> asio::awaitable<void> {
        u.set("/t", "1");
        co_return;
    };
    struct way {
        std::string said;
        std::function<asio::awaitable<void>(const client&)> run;
    };
    const std::vector<way> ways{
        {"put /q", [](const client& zk) { return work_queue(zk, "/q", work_queue_options().most_items(5)).put("x"); }},
        {"info /q", [](const client& zk) { return without_result(work_queue(zk, "/q").info()); }},
        {"dead /q", [](const client& zk) { return without_result(work_queue(zk, "/q").dead()); }},
        {"create /q", [](const client& zk) { return work_queue(zk, "/q").create(); }},
        {"add /c", [](const client& zk) { return without_result(as_kazoo(zk).add(1)); }},
        {"compare_and_set /c", [](const client& zk) { return without_result(as_kazoo(zk).compare_and_set(0, 1)); }},
        {"initialize /i", [](const client& zk) { return without_result(atomic_counter(zk, "/i").initialize(1)); }},
        {"next_number /n", [](const client& zk) { return without_result(next_number(zk, "/n")); }},
        {"transact", [&](const client& zk) { return transact(zk, body, transact_options().receipts("/r")); }},
        {"transact", [&](const client& zk) { return transact(zk, body, transact_options().promote_to("/lock")); }},
        {"join /g", [](const client& zk) { return without_result(group(zk, "/g").join("me")); }},
        {"acquire /m", [](const client& zk) { return without_result(mutex(zk, "/m").acquire()); }},
        {"acquire /u", [](const client& zk) { return without_result(unfair_mutex(zk, "/u").acquire()); }},
        {"acquire /s", [](const client& zk) { return without_result(slots(zk, "/s", 2).acquire()); }},
    };
    for (const way& w : ways)
        for (const std::string end : {": client closed", ": session expired", ": cancelled"}) {
            const auto cause = [&](fake_ensemble& ensemble, const client& zk, running& work) {
                if (end == ": client closed") asio::co_spawn(ensemble.context(), zk.close(), asio::detached);
                if (end == ": session expired") ensemble.expire(zk);
                if (end == ": cancelled") work.cancel();
            };
            for (const std::string& text : texts_at_each_step(w.run, cause)) {
                if (has(text, "connection lost")) continue;  // before the end of the session was known
                INFO(w.said << end);
                CHECK(text.substr(0, text.find(';')) == w.said + end);
            }
        }
}

// After a stall of the loop, the next lock's lease begins some time after its grant.
TEST_CASE("error texts: an acquire whose client is closed while its lease begins names the lock", "[testing]") {
    std::set<std::string> said;
    for (const auto stall : {5s, 6s, 7s, 8s, 9s})
        for (int at = 1; at < 30; ++at) {
            fake_ensemble ensemble;
            const client zk = ensemble.client(sessions_of_ten_seconds());
            ensemble.run(zk.connected());
            ensemble.run_for(1s);
            std::string text;
            auto take = [&]() -> asio::awaitable<void> {
                ensemble.stall(stall);
                text = co_await message_of(without_result(mutex(zk, "/l/a").acquire()));
            };
            running takes(ensemble.get_executor(), take());
            ensemble.run_for(stall + at * 100ms);
            asio::co_spawn(ensemble.context(), zk.close(), asio::detached);
            ensemble.run(takes.code());
            said.insert(text.substr(0, text.find('(')));
        }
    for (const std::string& text : said)
        CHECK((text.empty() || text == "acquire /l/a: client closed" || text == "acquire /l/a: session expired"));
    CHECK(said.count("acquire /l/a: client closed") == 1);
}

TEST_CASE("error texts: a partitioner names itself also after a term", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const running member(ensemble.get_executor(), one_partition(zk).run(&of_partition));
    ensemble.run_for(5s);
    ensemble.refuse("/p/locks/one", zk_errc::no_auth);
    for (const std::string& name : ensemble.children("/p/locks/one")) ensemble.remove("/p/locks/one/" + name);
    ensemble.run_for(5s);
    REQUIRE(member.ended());
    const std::string said = failure_of([&] { std::rethrow_exception(ensemble.run(member.end())); });
    CHECK(said.starts_with("partitioner /p/locks/one/"));
}

TEST_CASE("error texts: a leader that may not resign names lead()", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const auto body = [&](leadership&) -> asio::awaitable<void> {
        ensemble.refuse("/e", zk_errc::no_auth);
        co_await sleep_for(1s);
    };
    const std::string said =
        text_of(ensemble, leader_election(zk, "/e").lead(body, lead_options().requeue()));
    CHECK(said.starts_with("lead /e/"));
}

TEST_CASE("error texts: a reason is told once, and no list of servers as a path", "[testing]") {
    const error lost(errc::client_closed, "with_session", {}, "client closed");
    CHECK(with_outcome_unknown(lost, "a write").what() ==
          std::string("with_session: client closed (a write); it may or may not have been applied"));
    fake_ensemble ensemble;
    const client zk = ensemble.client(without_renewal());
    const auto body = [](const session&) -> asio::awaitable<void> { co_await sleep_for(1h); };
    const session_loop loop = run_in_each_session(zk, body);
    ensemble.run_for(5s);
    ensemble.expire(zk);
    CHECK(text_of(ensemble, loop.stopped()) == "run_in_each_session: session expired");
}

TEST_CASE("error texts: the end of a long work names the work, and not what it waited for", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(without_renewal());
    const work_queue queue(zk, "/q");
    const partitioner shards = one_partition(zk);
    const leader_election election(zk, "/e");
    CHECK(text_of(ensemble, timeout(5s, queue.consume(&of_item))) == "consume /q: timed out");
    CHECK(text_of(ensemble, timeout(5s, shards.run(&of_partition))) == "partitioner /p: timed out");
    const running consumer(ensemble.get_executor(), queue.consume(&of_item));
    const running member(ensemble.get_executor(), shards.run(&of_partition));
    const running leader(ensemble.get_executor(), election.lead(&of_leader));
    ensemble.run_for(5s);
    std::string end;
    SECTION("the session ends") {
        ensemble.expire(zk);
        end = ": session expired";
    }
    SECTION("the client is closed") {
        ensemble.run(zk.close());
        end = ": client closed";
    }
    const auto said = [&](const running& r) {
        return failure_of([&] { std::rethrow_exception(ensemble.run(r.end())); });
    };
    CHECK(said(consumer) == "consume /q" + end);
    CHECK(said(member) == "partitioner /p" + end);
    CHECK(said(leader) == "lead /e" + end);
}

TEST_CASE("error texts: an exception of a partition's body keeps its names", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const auto body = [](held_partition&) -> asio::awaitable<void> {
        throw error(zk_errc::no_node, "get", "/mine");
        co_return;
    };
    CHECK(text_of(ensemble, one_partition(zk).run(body)) == "get /mine: no such node");
}

TEST_CASE("error texts: an operation without a path does not name the servers as one", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds().connection_timeout(1s));
    ensemble.hold_down(zk);
    const auto transaction_body = [](unit&) -> asio::awaitable<void> { co_return; };
    const auto body = [](const session&) -> asio::awaitable<void> { co_return; };
    const auto path_of = [&](asio::awaitable<void> operation) {
        try {
            ensemble.run(std::move(operation));
        } catch (const error& e) {
            CHECK(e.code() == errc::not_connected);
            CHECK(has(e.hint(), "2181"));
            return e.path();
        }
        return std::string("nothing was thrown");
    };
    CHECK(path_of(transact(zk, transaction_body)).empty());
    CHECK(path_of(zk.with_session(body)).empty());
}
