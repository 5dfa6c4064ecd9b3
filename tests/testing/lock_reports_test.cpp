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

TEST_CASE("lock reports: of several locks, each one has its own token", "[reports]") {
    fake_ensemble ensemble;
    const auto seen = std::make_shared<recording_observer>();
    const client zk = ensemble.client(client_options("zk1").observer(seen, seen->where.get_executor()));
    std::vector<fencing_token> tokens;
    ensemble.run([&]() -> asio::awaitable<void> {
        const multi_mutex both = multi_mutex(zk).add(mutex(zk, "/a")).add(mutex(zk, "/b"));
        lock_guard guard = co_await both.acquire();
        tokens = guard.tokens();
        co_await guard.release();
        co_await zk.idle();
    });
    ensemble.run_for(1s);
    seen->look();
    REQUIRE(tokens.size() == 2);
    CHECK(tokens[0] < tokens[1]);
    REQUIRE(seen->waits.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) CHECK(seen->waits[i].token == tokens[i].value());
    REQUIRE(seen->holds.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) CHECK(seen->holds[i].token == tokens[1 - i].value());  // the last first
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
