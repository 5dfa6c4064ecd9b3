// Work whose own requests end each session, as servers do that end a session with each connection, and hang up at what
// they do not know. Sessions must not follow each other as fast as servers open them. Over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/session_loop.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace session_storm_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct work {
    std::string name;
    std::function<asio::awaitable<void>(client)> run;
};

asio::awaitable<void> keep_partition(held_partition&) { return sleep_for(1h); }

std::vector<work> all_kinds() {
    return {
        {"run_in_each_session",
         [](client zk) -> asio::awaitable<void> {
             const session_loop loop = run_in_each_session(
                 zk, [](session on) -> asio::awaitable<void> { co_await on.create("/l/a"); });
             co_await loop.stopped();
         }},
        {"run_in_each_session, a body that repeats what is retryable",
         [](client zk) -> asio::awaitable<void> {
             int times = 0;
             auto body = [&times](session on) -> asio::awaitable<void> {
                 if (++times % 2 == 1) throw error(zk_errc::throttled, "work");
                 co_await on.create("/l/a");
             };
             const session_loop loop = run_in_each_session(zk, body);
             co_await loop.stopped();
         }},
        {"run_in_each_session, a body whose first request is answered",
         [](client zk) -> asio::awaitable<void> {
             const session_loop loop = run_in_each_session(zk, [](session on) -> asio::awaitable<void> {
                 co_await on.create_or_set("/ok-" + std::string(200, 'x'), "");
                 co_await on.create("/l/a");
             });
             co_await loop.stopped();
         }},
        {"group",
         [](client zk) -> asio::awaitable<void> {
             const group members(zk, "/l/g");
             const auto joined = co_await members.join("one");
         }},
        {"persistent_node",
         [](client zk) -> asio::awaitable<void> {
             const persistent_node node(zk, "/l/node", "data");
             co_await node.ended();
         }},
        {"candidate",
         [](client zk) -> asio::awaitable<void> {
             const candidate stands(zk, "/l/c");
             co_await stands.run([](const leadership&) -> asio::awaitable<void> { co_return; });
         }},
        {"partitioner",
         [](client zk) -> asio::awaitable<void> {
             const partitioner divided(zk, "/l/p", {"a", "b", "c"});
             co_await divided.run(&keep_partition);
         }},
        {"campaign",
         [](client zk) -> asio::awaitable<void> {
             const leader_election election(zk, "/l/e");
             const leadership leads = co_await election.campaign();
         }},
        {"lead, the body's requests",
         [](client zk) -> asio::awaitable<void> {
             const leader_election election(zk, "/e");
             auto body = [zk](leadership&) -> asio::awaitable<void> { co_await zk.session_now().create("/l/a"); };
             co_await election.lead(body);
         }},
        {"observe",
         [](client zk) -> asio::awaitable<void> {
             const leader_observer observer(zk, "/l/o");
             co_await observer.next();
         }},
        {"mutex",
         [](client zk) -> asio::awaitable<void> {
             const mutex lock(zk, "/l/m");
             const lock_guard guard = co_await lock.acquire(acquire_options().survive_expiry());
         }},
        {"cohort_mutex",
         [](client zk) -> asio::awaitable<void> {
             const cohort_mutex lock(zk, "/l/m");
             const lock_guard guard = co_await lock.acquire(acquire_options().survive_expiry());
         }},
        {"slots",
         [](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, "/l/s", 3);
             const lock_guard guard = co_await numbers.acquire(acquire_options().survive_expiry());
         }},
        {"barrier",
         [](client zk) -> asio::awaitable<void> {
             const barrier gate(zk, "/l/b");
             co_await gate.remove();
         }},
        {"work_queue, receive",
         [](client zk) -> asio::awaitable<void> {
             const work_queue queue(zk, "/l/q");
             const delivery d = co_await queue.receive();
         }},
        {"work_queue, take",
         [](client zk) -> asio::awaitable<void> {
             const work_queue queue(zk, "/l/q");
             co_await queue.take();
         }},
        {"work_queue, the requests of a consumer's body",
         [](client zk) -> asio::awaitable<void> {
             const work_queue queue(zk, "/q");
             co_await queue.put("item");
             auto body = [zk](delivery&) -> asio::awaitable<void> { co_await zk.session_now().create("/l/a"); };
             co_await queue.consume(body);
         }},
        {"atomic_counter, add",
         [](client zk) -> asio::awaitable<void> {
             const atomic_counter counter(zk, "/l/n");
             co_await counter.add(1);
         }},
        {"atomic_counter, compare_and_set",
         [](client zk) -> asio::awaitable<void> {
             const atomic_counter counter(zk, "/l/n");
             co_await counter.compare_and_set(0, 1);
         }},
        {"modify",
         [](client zk) -> asio::awaitable<void> {
             auto change = [](std::optional<node_data>) { return std::optional<std::string>("x"); };
             co_await modify(zk, "/l/m", change, modify_options().receipts("/l/receipts"));
         }},
        {"transact",
         [](client zk) -> asio::awaitable<void> {
             auto body = [](unit& u) -> asio::awaitable<void> { co_await u.get("/l/t"); };
             co_await transact(zk, body, transact_options().receipts("/l/receipts"));
         }},
    };
}

// The sessions of a client.
class session_count {
public:
    session_count(fake_ensemble& e, const client& zk) : e_(e), zk_(zk) {}
    void look() { ids_.insert(e_.session_id(zk_)); }
    std::size_t now() const { return ids_.size(); }

private:
    fake_ensemble& e_;
    const client& zk_;
    std::set<std::int64_t> ids_;
};

}  // namespace

TEST_CASE("session storm: work whose requests end each session opens few sessions", "[testing][numbers]") {
    for (const work& each : all_kinds()) {
        INFO(each.name);
        fake_ensemble e;
        e.create("/e");
        const client zk = e.client(sessions_of_ten_seconds());
        e.run(zk.connected());
        session_count sessions(e, zk);
        e.on_step([&](std::string_view step) {
            sessions.look();
            if (step.find(" apply ") != step.npos && step.find(" /l") != step.npos) e.expire(zk);
        });
        running working(e.get_executor(), each.run(zk));
        e.run_for(1min);
        CHECK(sessions.now() >= 5);
        CHECK(sessions.now() <= 20);
        CHECK_FALSE(working.ended());
        // Once they do not end the sessions any more, the next attempt succeeds.
        e.on_step([&](std::string_view) { sessions.look(); });
        const std::size_t before = sessions.now();
        e.run_for(1min);
        CHECK(sessions.now() <= before + 1);
        working.cancel();
        e.run(zk.close());
    }
}

TEST_CASE("session storm: any number of works that end each session open as few sessions as one", "[testing][numbers]") {
    const int works = GENERATE(1, 10, 100);
    CAPTURE(works);
    fake_ensemble e;
    const client zk = e.client(sessions_of_ten_seconds());
    e.run(zk.connected());
    session_count sessions(e, zk);
    e.on_step([&](std::string_view step) {
        sessions.look();
        if (step.find(" apply ") != step.npos && step.find(" /l") != step.npos) e.expire(zk);
    });
    std::vector<session_loop> all;
    for (int i = 0; i < works; ++i) {
        auto body = [i](session on) -> asio::awaitable<void> { co_await on.create("/l/" + std::to_string(i)); };
        all.push_back(run_in_each_session(zk, body));
    }
    e.run_for(1min);
    CHECK(sessions.now() >= 5);
    CHECK(sessions.now() <= 20);
    all.clear();
    e.run(zk.close());
}

TEST_CASE("session storm: work that has lasted for a session timeout begins again at once", "[testing]") {
    fake_ensemble e;
    const client zk = e.client(sessions_of_ten_seconds());
    std::vector<fake_ensemble::duration> began, ended;
    auto body = [&](const session&) -> asio::awaitable<void> {
        began.push_back(e.now());
        const std::size_t n = began.size();
        asio::steady_timer lasting(co_await asio::this_coro::executor, n == 9 ? 11s : 1s);
        co_await lasting.async_wait(asio::use_awaitable);
        e.expire(zk);
        ended.push_back(e.now());
        lasting.expires_after(1h);
        co_await lasting.async_wait(asio::use_awaitable);  // until the session is known to be over
    };
    const session_loop loop = run_in_each_session(zk, body);
    e.run_for(2min);
    REQUIRE(began.size() > 11);
    CHECK(began[1] - ended[0] < 100ms);
    CHECK(began[8] - ended[7] > 3s);
    CHECK(began[8] - ended[7] < 15s + 100ms);
    CHECK(began[9] - ended[8] < 25ms);   // no pause, but for the next session
    CHECK(began[10] - ended[9] < 100ms);  // the first pause again
    e.run(zk.close());
}

}  // namespace session_storm_tests
