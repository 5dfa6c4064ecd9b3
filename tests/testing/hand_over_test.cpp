// A session that is left to the next process, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

// Hands the session of `from` over; how often that was begun, and what it has returned.
struct handing_over {
    handing_over(fake_ensemble& e, client from) : task(e.get_executor(), run(std::move(from))) {}
    asio::awaitable<void> run(client from) { left = co_await from.hand_over(); }

    std::optional<session_credentials> left;
    running task;
};

asio::awaitable<void> hold(asio::awaitable<lock_guard> acquiring) {
    const lock_guard guard = co_await std::move(acquiring);
    co_await sleep_for(24h);
}

}  // namespace

TEST_CASE("hand_over: waits for acquires, whose nodes would stay", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const std::string path = "/lock";
    std::optional<running> waits;
    lock_guard theirs;
    std::string queue = path;
    SECTION("of a mutex") {
        theirs = ensemble.run(mutex(other, path).acquire());
        waits.emplace(ensemble.get_executor(), hold(mutex(zk, path).acquire()));
    }
    SECTION("of a cohort_mutex") {
        theirs = ensemble.run(cohort_mutex(other, path).acquire());
        waits.emplace(ensemble.get_executor(), hold(cohort_mutex(zk, path).acquire()));
    }
    SECTION("of a semaphore") {
        queue += "/leases";
        theirs = ensemble.run(semaphore(other, path, permits::fixed(1)).acquire());
        waits.emplace(ensemble.get_executor(), hold(semaphore(zk, path, permits::fixed(1)).acquire()));
    }
    ensemble.run_for(1s);
    handing_over to_heir(ensemble, zk);
    ensemble.run_for(20s);
    CHECK_FALSE(to_heir.task.ended());
    CHECK(zk.state() == session_state::connected);
    waits->cancel();
    CHECK_FALSE(ensemble.run(to_heir.task.code()));
    REQUIRE(to_heir.left);
    const client heir = ensemble.client(sessions_of_ten_seconds().resume(*to_heir.left));
    ensemble.run(heir.connected());
    CHECK(ensemble.children(queue).size() == 1);
    theirs = lock_guard();
    ensemble.run_for(1s);
    CHECK(ensemble.run(heir.current_session()).id() == to_heir.left->id());
}

TEST_CASE("hand_over: the idle place of a cohort_mutex is given back", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const cohort_mutex lock(zk, "/lock", cohort_mutex_options().linger(1h));
    { const lock_guard guard = ensemble.run(lock.acquire()); }
    ensemble.run_for(1s);
    REQUIRE(ensemble.children("/lock").size() == 1);
    handing_over to_heir(ensemble, zk);
    CHECK_FALSE(ensemble.run(to_heir.task.code()));
    REQUIRE(to_heir.left);
    CHECK(ensemble.children("/lock").empty());
}

TEST_CASE("hand_over: a guard that is destroyed meanwhile leaves no node", "[testing]") {
    for (int turns = 0; turns < 20; ++turns) {
        CAPTURE(turns);
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        std::optional<lock_guard> guard(ensemble.run(mutex(zk, "/lock").acquire()));
        handing_over to_heir(ensemble, zk);
        auto drop = [&]() -> asio::awaitable<void> {
            co_await zkasio::test::turns(turns);
            if (guard->held()) guard.reset();
        };
        running dropping(ensemble.get_executor(), drop());
        CHECK_FALSE(ensemble.run(to_heir.task.code()));
        const bool was_dropped = !guard;
        ensemble.run(dropping.code());
        if (was_dropped) CHECK(ensemble.children("/lock").empty());
    }
}

TEST_CASE("hand_over: an acquire that was cancelled at whichever moment leaves no node", "[testing]") {
    const std::string kind = GENERATE("mutex", "multi_mutex", "semaphore");
    CAPTURE(kind);
    for (int turns = 0; turns < 60; ++turns) {
        CAPTURE(turns);
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
        std::vector<std::string> free{"/a"};
        std::string taken = "/b";
        lock_guard theirs;
        std::optional<running> acquiring;
        if (kind == "semaphore") {
            free = {"/b/locks"};
            taken = "/b/leases";
            theirs = ensemble.run(semaphore(other, "/b", permits::fixed(2)).acquire(2));
            acquiring.emplace(ensemble.get_executor(), hold(semaphore(zk, "/b", permits::fixed(2)).acquire(2)));
        } else {
            theirs = ensemble.run(mutex(other, "/b").acquire());
            multi_mutex both(zk);
            both.add(mutex(zk, "/a")).add(mutex(zk, "/b"));
            acquiring.emplace(ensemble.get_executor(), hold(kind == "mutex" ? mutex(zk, "/b").acquire() : both.acquire()));
        }
        std::optional<session_credentials> left;
        auto hand_over = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            co_await zkasio::test::turns(turns);
            acquiring->cancel();
            left = co_await zk.hand_over();
        };
        const running to_heir(ensemble.get_executor(), hand_over());
        CHECK_FALSE(ensemble.run(to_heir.code()));
        CHECK(left);
        ensemble.run(acquiring->code());
        for (const std::string& queue : free)
            if (ensemble.exists(queue)) CHECK(ensemble.children(queue).empty());
        CHECK(ensemble.children(taken).size() == theirs.paths().size());
    }
}

TEST_CASE("hand_over: cancelled when the session is left already, another call tells the credentials", "[testing]") {
    for (int turns = 0; turns < 30; ++turns) {
        CAPTURE(turns);
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        ensemble.run(zk.connected());
        const auto id = ensemble.session_id(zk);
        handing_over first(ensemble, zk);
        auto cancel = [&]() -> asio::awaitable<void> {
            co_await zkasio::test::turns(turns);
            first.task.cancel();
        };
        running cancelling(ensemble.get_executor(), cancel());
        ensemble.run(first.task.code());
        handing_over again(ensemble, zk);
        CHECK_FALSE(ensemble.run(again.task.code()));
        REQUIRE(again.left);
        CHECK(again.left->id() == id);
        ensemble.run(cancelling.code());
    }
}

TEST_CASE("hand_over: two calls at a time tell the same credentials", "[testing]") {
    for (int turns = 0; turns < 30; ++turns) {
        CAPTURE(turns);
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        ensemble.run(zk.connected());
        const auto id = ensemble.session_id(zk);
        std::optional<lock_guard> guard(ensemble.run(mutex(zk, "/lock").acquire()));
        guard.reset();  // its removal is what both wait for
        handing_over first(ensemble, zk);
        ensemble.run(zkasio::test::turns(turns));
        handing_over second(ensemble, zk);
        for (handing_over* each : {&first, &second}) {
            CHECK_FALSE(ensemble.run(each->task.code()));
            REQUIRE(each->left);
            CHECK(each->left->id() == id);
        }
    }
}

TEST_CASE("hand_over: a client that is closed meanwhile, or before, has nothing to hand over", "[testing]") {
    for (int turns = 0; turns < 30; ++turns) {
        CAPTURE(turns);
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds());
        const client other = ensemble.client(sessions_of_ten_seconds());
        const lock_guard theirs = ensemble.run(mutex(other, "/lock").acquire());
        running waits(ensemble.get_executor(), hold(mutex(zk, "/lock").acquire()));
        ensemble.run_for(1s);
        handing_over to_heir(ensemble, zk);
        ensemble.run(zkasio::test::turns(turns));
        ensemble.run(zk.close());
        CHECK(ensemble.run(to_heir.task.code()) == errc::client_closed);
        CHECK(ensemble.run(code_of(zk.hand_over())) == errc::client_closed);
        CHECK(ensemble.run(waits.code()) == errc::client_closed);
        CHECK(ensemble.children("/lock").size() == 1);
    }
}

TEST_CASE("hand_over: items that are given back after a pause are not claimed by the heir", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const client other = ensemble.client(sessions_of_ten_seconds());
    const work_queue ours(zk, "/queue"), theirs(other, "/queue");
    ensemble.run(theirs.put("first"));
    ensemble.run(theirs.put("second"));
    auto give_back = [&]() -> asio::awaitable<void> {
        delivery d = co_await ours.receive();
        co_await d.again(1h);
    };
    ensemble.run(give_back());
    auto fail = [](delivery&) -> asio::awaitable<void> {
        throw std::runtime_error("no");
        co_return;
    };
    auto consume = [&]() -> asio::awaitable<void> { co_await ours.consume(fail); };
    running consuming(ensemble.get_executor(), consume());
    ensemble.run_for(10ms);
    consuming.cancel();
    CHECK(ensemble.run(consuming.code()) == asio::error::operation_aborted);
    REQUIRE(ensemble.children("/queue/taken").size() == 2);
    handing_over to_heir(ensemble, zk);
    CHECK_FALSE(ensemble.run(to_heir.task.code()));
    REQUIRE(to_heir.left);
    const client heir = ensemble.client(sessions_of_ten_seconds().resume(*to_heir.left));
    ensemble.run(heir.connected());
    CHECK(ensemble.children("/queue/taken").empty());
    CHECK(ensemble.run(theirs.take()) == "first");
    CHECK(ensemble.run(theirs.take()) == "second");
}
