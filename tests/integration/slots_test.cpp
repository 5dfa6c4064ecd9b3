#include "support/test_client.hpp"

#include <zkasio/locks/slots.hpp>

#include <asio/this_coro.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace slots_integration_tests {

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("slots: the lowest free number, one holder at a time, of many coroutines and clients", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "slots-many") + "/ids";
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const slots ours(zk, dir, 3), theirs(other, dir, 3);
        {
            const lock_guard zero = co_await ours.acquire(), one = co_await theirs.acquire();
            CHECK(zero.slot() == 0u);
            CHECK(one.slot() == 1u);
            const auto two = co_await theirs.try_acquire();
            REQUIRE(two);
            CHECK(two->slot() == 2u);
            const auto none = co_await ours.try_acquire();
            CHECK_FALSE(none);
            const auto still_none = co_await ours.try_acquire_for(50ms);
            CHECK_FALSE(still_none);
        }
        std::map<std::uint32_t, int> holders;
        int done = 0;
        const auto work = [&](const slots& from) -> asio::awaitable<void> {
            for (int i = 0; i < 5; ++i) {
                lock_guard guard = co_await from.acquire();
                CHECK(++holders[*guard.slot()] == 1);
                const auto there = co_await zk.exists(guard.path());
                CHECK(there);
                --holders[*guard.slot()];
                co_await guard.release();
                ++done;
            }
        };
        std::vector<running> all;
        for (int i = 0; i < 4; ++i) all.emplace_back(executor, work(i % 2 ? ours : theirs));
        for (const running& task : all) {
            const std::exception_ptr failed = co_await task.end();
            CHECK_FALSE(failed);
        }
        CHECK(done == 20);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("slots: a number is free with its session, and lost to an operator") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "slots-lost") + "/ids";
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const slots ours(zk, dir, 1), theirs(victim, dir, 1);
        const lock_guard lost = co_await theirs.acquire();
        std::optional<lock_guard> next;
        const auto take = [&]() -> asio::awaitable<void> { next.emplace(co_await ours.acquire()); };
        const running taking(executor, take());
        co_await expire_session(victim);
        const std::exception_ptr failed = co_await taking.end();
        CHECK_FALSE(failed);
        REQUIRE(next);
        CHECK(next->slot() == 0u);
        const loss_reason expired = co_await lost.lost();
        CHECK(expired != loss_reason::none);
        co_await zk.remove(next->path());
        const loss_reason deleted = co_await next->lost();
        CHECK(deleted == loss_reason::node_deleted);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("slots: a number rests by the servers' clock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "slots-quiet") + "/ids";
        slots_options rest;
        rest.quiet(400ms);
        const slots numbers(zk, dir, 1, rest);
        lock_guard guard = co_await numbers.acquire();
        const auto freed = std::chrono::steady_clock::now();
        co_await guard.release();
        const auto none = co_await numbers.try_acquire();
        CHECK_FALSE(none);
        lock_guard again = co_await numbers.acquire();
        CHECK(again.slot() == 0u);
        CHECK(std::chrono::steady_clock::now() - freed >= 350ms);  // their clock, and ours
        co_await again.release();
    };
    with_client(body);
}

}  // namespace slots_integration_tests
