// What client::idle() promises, with a real server: nothing is left of guards that were destroyed and of acquires that
// were cancelled. Another client looks: what our own asks comes behind what we have sent in any case.
#include "integration/kinds_of_lock.hpp"

#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Those below it. The server may remove directories of locks meanwhile, once they are empty.
asio::awaitable<std::size_t> ephemeral_nodes(client zk, std::string path) {
    node_children below;
    try {
        below = co_await zk.children(path);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    std::size_t all = 0;
    for (const std::string& name : below.names) {
        const std::string child = path + '/' + name;
        const auto node = co_await zk.exists(child);
        if (node && node->ephemeral_owner != 0)
            ++all;
        else
            all += co_await ephemeral_nodes(zk, child);
    }
    co_return all;
}

asio::awaitable<void> acquire_and_drop(any_lock lock) { (void)co_await lock->acquire(); }

}  // namespace

TEST_CASE("idle: locks of guards that were destroyed are free afterwards", "[idle]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "idle_destroyed");
        const test_client other(co_await asio::this_coro::executor, options());
        for (const any_lock& lock : one_of_each(zk, dir)) {
            (void)co_await lock->acquire();  // and destroyed
            co_await zk.idle();
            const std::size_t left = co_await ephemeral_nodes(other, dir);
            CHECK(left == 0);
        }
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("idle: nothing is left of acquires that were cancelled at whichever moment", "[idle]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "idle_cancelled");
        const test_client other(co_await asio::this_coro::executor, options());
        for (int turns = 0; turns < 12; ++turns) {
            for (const any_lock& lock : one_of_each(zk, dir)) {
                const lock_guard holder = co_await lock->acquire();
                std::vector<running> waiters;
                for (int i = 0; i < 5; ++i) waiters.emplace_back(zk.get_executor(), acquire_and_drop(lock));
                for (int i = 0; i < turns; ++i) co_await asio::post(zk.get_executor(), asio::use_awaitable);
                for (running& w : waiters) w.cancel();
                for (const running& w : waiters) {
                    const std::error_code code = co_await w.code();
                    CHECK(code == condition::cancelled);
                }
                co_await zk.idle();
                const std::size_t left = co_await ephemeral_nodes(other, dir);
                CHECK(left == holder.paths().size());
            }
            co_await zk.idle();
            const std::size_t left = co_await ephemeral_nodes(other, dir);
            CHECK(left == 0);
        }
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("idle: nothing is left of acquires that a limit has ended", "[idle]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "idle_limited");
        const test_client other(co_await asio::this_coro::executor, options());
        for (auto limit = 0us; limit < 4ms; limit += 250us) {
            for (const any_lock& lock : one_of_each(zk, dir)) {
                INFO(lock->path() << " within " << limit.count() << " us");
                {
                    const result<lock_guard> in_time = co_await as_result(timeout(limit, lock->acquire()));
                    if (!in_time) {
                        CHECK(in_time.error().code() == errc::timed_out);
                        const std::string named = in_time.error().path();  // nothing, of one that has not begun
                        CHECK((named.empty() || named == lock->path()));
                        CHECK_FALSE(in_time.error().outcome_unknown());
                    }
                }
                co_await zk.idle();
                const std::size_t left = co_await ephemeral_nodes(other, dir);
                CHECK(left == 0);
            }
        }
        co_await other.close();
    };
    with_client(body);
}
