// Acquires of a multi_mutex that end without it: tried, limited, cancelled.

#include "integration/multi_locks.hpp"

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("multi_mutex: try_acquire and time limits leave nothing behind") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-try");
        const test_client other(co_await asio::this_coro::executor, options());
        const mutex theirs(other, dir + "/c");
        const multi_mutex all = three(zk, dir);
        lock_guard held = co_await theirs.acquire();
        auto guard = co_await all.try_acquire();
        CHECK_FALSE(guard);
        guard = co_await all.try_acquire_for(30ms);
        CHECK_FALSE(guard);
        guard = co_await all.try_acquire_for(0ms);
        CHECK_FALSE(guard);
        guard = co_await all.try_acquire_until(boot_clock::now() - 1s);
        CHECK_FALSE(guard);
        co_await until_queued(zk, dir + "/a", 0);
        co_await until_queued(zk, dir + "/b", 0);
        co_await until_queued(zk, dir + "/c", 1);
        CHECK(held.held());
        co_await held.release();
        guard = co_await all.try_acquire_for(10s);
        CHECK(guard);
        guard.reset();
        co_await until_free(zk, dir);
        guard = co_await all.try_acquire();
        CHECK(guard);
        guard.reset();
        co_await until_free(zk, dir);
        co_await until_quiet(zk, dir);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: an acquire that is cancelled at any moment leaves no node and no watch") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-cancel");
        const test_client other(co_await asio::this_coro::executor, options());
        const mutex theirs(other, dir + "/b");
        const multi_mutex all = three(zk, dir);
        auto attempt = [&]() -> asio::awaitable<void> { const lock_guard g = co_await all.acquire(); };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 2);
        co_await until_free(zk, dir);
        lock_guard held = co_await theirs.acquire();
        const int waiting = co_await cancel_everywhere(attempt, 60);
        CHECK(waiting == 60);
        co_await until_queued(zk, dir + "/a", 0);
        co_await until_queued(zk, dir + "/b", 1);
        co_await until_queued(zk, dir + "/c", 0);
        CHECK(held.held());
        co_await held.release();
        lock_guard still = co_await three(zk, dir).acquire();
        co_await still.release();
        co_await until_quiet(zk, dir);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: when missing directories are made, too, a cancelled acquire leaves no node") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-cancel-parents");
        int i = 0;
        auto attempt = [&]() -> asio::awaitable<void> {
            const lock_guard g = co_await three(zk, dir + "/" + std::to_string(++i)).acquire();
        };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 2);
        for (; i > 0; --i) co_await until_free(zk, dir + "/" + std::to_string(i));
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("multi_mutex: an acquire that is cancelled partially or totally ends, where that is enabled") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-cancel-types");
        const auto executor = co_await asio::this_coro::executor;
        for (const auto how : {asio::cancellation_type::partial, asio::cancellation_type::total}) {
            const multi_mutex all = three(zk, dir);
            auto attempt = [&]() -> asio::awaitable<void> {
                co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
                (void)co_await all.acquire();
            };
            lock_guard last = co_await mutex(zk, dir + "/c").acquire();
            running waiting(executor, attempt());
            co_await until_queued(zk, dir + "/c", 2);
            waiting.cancel(how);
            const std::error_code c = co_await waiting.code();
            CHECK(c == condition::cancelled);
            co_await until_queued(zk, dir + "/a", 0);
            co_await last.release();
        }
        co_await until_free(zk, dir);
    };
    with_client(body);
}
