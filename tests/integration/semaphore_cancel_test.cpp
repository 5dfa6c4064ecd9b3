// Acquires of a semaphore that end without a permit: tried, limited, cancelled.

#include "integration/semaphore_nodes.hpp"
#include "support/lock_checks.hpp"

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("semaphore: a waiter is cancelled partially or totally, where that is enabled") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-cancel-types");
        const auto executor = co_await asio::this_coro::executor;
        co_await zk.create(dir + "/count", count(1));
        const semaphore fixed(zk, dir + "/fixed", permits::fixed(1)),
            counted(zk, dir + "/counted", permits::counted_by(dir + "/count"));
        for (const semaphore& s : {fixed, counted}) {
            for (const auto how : {asio::cancellation_type::partial, asio::cancellation_type::total,
                                   asio::cancellation_type::terminal}) {
                auto attempt = [&]() -> asio::awaitable<void> {
                    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
                    (void)co_await s.acquire();
                };
                lock_guard held = co_await s.acquire();
                running waiting(executor, attempt());
                co_await until_queued(zk, leases(s), 2);
                const std::size_t watches = s.path() == fixed.path() ? 1 : 2;  // of the leases, and of their number
                auto waits = [&]() -> asio::awaitable<bool> { co_return watched_below(dir).size() >= watches; };
                co_await eventually(waits);
                waiting.cancel(how);
                const std::error_code c = co_await waiting.code();
                CHECK(c == condition::cancelled);
                co_await held.release();
                co_await until_free(zk, s);
            }
        }
    };
    with_client(body);
}

TEST_CASE("semaphore: an acquire that is cancelled at any moment leaves no lease, no lock and no watch") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-cancel");
        co_await zk.create(dir + "/max", count(3));
        const semaphore s(zk, dir + "/s", permits::counted_by(dir + "/max"));
        auto attempt = [&]() -> asio::awaitable<void> { const lock_guard g = co_await s.acquire(2); };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 5);
        co_await until_free(zk, s);
        {
            const lock_guard holder = co_await s.acquire(2);
            const int waiting = co_await cancel_everywhere(attempt, 80);
            CHECK(waiting == 80);
            co_await until_queued(zk, leases(s), 2);
            co_await until_queued(zk, locks(s), 0);
            CHECK(holder.held());
            // In the line behind one that is being served.
            taker served(co_await asio::this_coro::executor, s.acquire(3));
            co_await until_queued(zk, leases(s), 5);
            co_await cancel_everywhere(attempt, 40);
            co_await until_queued(zk, locks(s), 1);
            served.cancel();
            const std::error_code c = co_await served.code();
            CHECK(c == condition::cancelled);
        }
        co_await until_free(zk, s);
        co_await until_quiet(zk, dir);
        const lock_guard all = co_await s.acquire(3);
        CHECK(all.held());
    };
    with_client(body);
}

TEST_CASE("semaphore: acquire_each that is cancelled at any moment leaves nothing") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-cancel-each");
        const semaphore s(zk, dir, permits::fixed(3));
        auto attempt = [&]() -> asio::awaitable<void> { const std::vector<lock_guard> g = co_await s.acquire_each(3); };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 5);
        co_await until_free(zk, s);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("semaphore: try_acquire and time limits leave nothing behind") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "semaphore-try");
        const semaphore s(zk, dir, permits::fixed(2));
        {
            const auto free = co_await s.try_acquire(2);
            REQUIRE(free);
            auto more = co_await s.try_acquire();
            CHECK_FALSE(more);
            more = co_await s.try_acquire_for(30ms);
            CHECK_FALSE(more);
            more = co_await s.try_acquire_for(0ms, 2);
            CHECK_FALSE(more);
            more = co_await s.try_acquire_until(boot_clock::now() - 1s);
            CHECK_FALSE(more);
            co_await until_queued(zk, leases(s), 2);
            co_await until_queued(zk, locks(s), 0);
            CHECK(free->held());
        }
        const auto in_time = co_await s.try_acquire_for(10s, 2);
        CHECK(in_time);
        auto negative = [&]() -> asio::awaitable<void> { co_await s.try_acquire_for(-1s); };
        const std::error_code c = co_await code_of(negative());
        CHECK(c == errc::invalid_argument);
        auto only_its_own = [&]() -> asio::awaitable<bool> { co_return watched_below(locks(s)).empty(); };
        co_await eventually(only_its_own);
    };
    with_client(body);
}
