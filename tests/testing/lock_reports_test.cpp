// What a client tells of the locks that consist of several nodes.

#include "support/catch.hpp"
#include "support/recording_observer.hpp"
#include "support/test_client.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <memory>
#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

TEST_CASE("lock reports: permits of a semaphore are one wait and one hold", "[reports]") {
    fake_ensemble ensemble;
    const auto seen = std::make_shared<recording_observer>();
    const client zk = ensemble.client(client_options("zk1").observer(seen, seen->where.get_executor()));
    ensemble.run([&]() -> asio::awaitable<void> {
        const semaphore s(zk, "/s", permits::fixed(3));
        lock_guard two = co_await s.acquire(2);
        co_await zk.exists("/s");  // what happens on the client's strand has been counted by then
        CHECK(zk.stats().locks.held == 1);
        const std::optional<lock_guard> none = co_await s.try_acquire(2);
        CHECK_FALSE(none);
        co_await two.release();
        co_await zk.idle();
        const client_stats stats = zk.stats();
        CHECK(stats.locks.waits.count() == 2);
        CHECK(stats.locks.holds.count() == 1);
        CHECK(stats.locks.held == 0);
    });
    ensemble.run_for(1s);
    seen->look();
    REQUIRE(seen->waits.size() == 2);
    CHECK(seen->waits.front().path == "/s");
    CHECK(seen->waits.front().token != 0);
    CHECK(seen->waits.back().refused);
    REQUIRE(seen->holds.size() == 1);
    CHECK(seen->holds.front().path == "/s");
}

TEST_CASE("lock reports: locks that are taken in one transaction have its token", "[reports]") {
    fake_ensemble ensemble;
    const auto seen = std::make_shared<recording_observer>();
    const client zk = ensemble.client(client_options("zk1").observer(seen, seen->where.get_executor()));
    std::int64_t token = 0;
    ensemble.run([&]() -> asio::awaitable<void> {
        const multi_mutex both = multi_mutex(zk).add(mutex(zk, "/a")).add(mutex(zk, "/b"));
        lock_guard guard = co_await both.acquire();
        token = guard.token().value();
        co_await guard.release();
        co_await zk.idle();
    });
    ensemble.run_for(1s);
    seen->look();
    CHECK(token != 0);
    REQUIRE(seen->waits.size() == 2);
    for (const lock_wait_report& r : seen->waits) CHECK(r.token == token);
    REQUIRE(seen->holds.size() == 2);
    for (const lock_hold_report& r : seen->holds) CHECK(r.token == token);
}

TEST_CASE("semaphore: who asks for more permits than a node allows creates no nodes until it does", "[semaphore]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    ensemble.create("/count", std::string("\0\0\0\2", 4));
    ensemble.run([&]() -> asio::awaitable<void> {
        const semaphore s(zk, "/s", permits::counted_by("/count"));
        const std::optional<lock_guard> none = co_await s.try_acquire(3);
        CHECK_FALSE(none);
        std::optional<lock_guard> guard;
        auto acquire = [&]() -> asio::awaitable<void> { guard = co_await s.acquire(3); };
        const running acquiring(ensemble.get_executor(), acquire());
        co_await asio::steady_timer(ensemble.context(), 5s).async_wait(asio::use_awaitable);
        CHECK(ensemble.children("/s/leases").empty());
        CHECK_FALSE(acquiring.ended());
        ensemble.set("/count", std::string("\0\0\0\3", 4));
        const std::error_code code = co_await acquiring.code();
        CHECK(code == std::error_code());
        REQUIRE(guard);
        CHECK(ensemble.children("/s/leases").size() == 3);
        co_await guard->release();
    });
}
