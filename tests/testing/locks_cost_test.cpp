// What n contenders for a lock cost the servers: laws, compared at 10, 100 and 1000.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/client.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace locks_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

// Acquires the lock, and releases it in the same turn.
asio::awaitable<void> pass(mutex lock) {
    lock_guard guard = co_await lock.acquire();
    co_await guard.release();
}

}  // namespace

TEST_CASE("cost of a mutex: coroutines of one client ask two requests each", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        const mutex lock(all[0], "/locks/orders");
        e.run(pass(lock));  // makes the directory
        const cost_meter meter(e);
        std::vector<std::unique_ptr<running>> users;
        for (std::size_t i = 0; i < n; ++i) users.push_back(std::make_unique<running>(e.get_executor(), pass(lock)));
        for (const auto& one : users) e.run(one->code());
        const cost c = meter.read();
        INFO(n << " coroutines: " << c);
        CHECK(c.writes == 2 * n);    // a create, and a removal
        CHECK(c.listings <= 2);      // by the first of them
        CHECK(c.requests <= 2 * n + 8);
        CHECK(c.bytes <= 700 * n + 4000);
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        users.clear();
        close_all(e, all);
    }
}

// Beyond eight, they wait until a server has answered one of them.
TEST_CASE("cost of a mutex at a missing directory: few creates of one client are refused", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        const mutex lock(all[0], "/locks/orders");
        const cost c = cost_of_users(e, n, [&](std::size_t) { return pass(lock); });
        INFO(n << " coroutines: " << c);
        CHECK(c.requests <= 2 * n + 20);
        CHECK(c.writes <= 2 * n + 12);
        CHECK(c.bytes <= 700 * n + 6000);
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        close_all(e, all);
    }
}

TEST_CASE("cost of a mutex: a crowd of processes, each of them watches its predecessor", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{100}, std::size_t{200}}) {  // 1000 take half a minute
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/locks/orders");
        const cost_meter meter(e);
        std::vector<std::unique_ptr<running>> users;
        for (const client& zk : all)
            users.push_back(std::make_unique<running>(e.get_executor(), pass(mutex(zk, "/locks/orders"))));
        for (const auto& one : users) e.run(one->code());
        const cost c = meter.read();
        INFO(n << " processes: " << c);
        CHECK(c.writes <= 2 * n);
        CHECK(c.listings <= 2 * n);
        CHECK(c.requests <= 6 * n);
        CHECK(c.bytes <= 80 * n * n + 1000 * n);  // each lists the queue once: all names
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        users.clear();
        close_all(e, all);
    }
}

TEST_CASE("cost of a mutex: processes that come again and again list all others for each turn", "[numbers]") {
    const auto pass_thrice = [](mutex lock) -> asio::awaitable<void> {
        for (int turn = 0; turn < 3; ++turn) {
            lock_guard guard = co_await lock.acquire();
            co_await guard.release();
        }
    };
    for (const std::size_t n : {std::size_t{10}, std::size_t{100}}) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/locks/orders");
        const cost c = cost_of_users(e, n, [&](std::size_t i) { return pass_thrice(mutex(all[i], "/locks/orders")); });
        INFO(n << " processes: " << c);
        CHECK(c.writes <= 6 * n);
        CHECK(c.listings <= 6 * n);
        CHECK(c.requests <= 18 * n);
        CHECK(c.bytes <= 360 * n * n + 3000 * n);  // 80 of the first turn, 140 of each later one
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        close_all(e, all);
    }
}

TEST_CASE("cost of a multi_mutex: that of each of its locks", "[numbers]") {
    const auto pass_all = [](multi_mutex several) -> asio::awaitable<void> {
        lock_guard guard = co_await several.acquire();
        co_await guard.release();
    };
    const auto of_k = [](const client& zk, std::size_t k) {
        multi_mutex several(zk);
        for (std::size_t i = 0; i < k; ++i) several.add(mutex(zk, "/locks/" + std::to_string(i)));
        return several;
    };
    for (const std::size_t k : {std::size_t{2}, std::size_t{5}})
        for (const bool one_process : {true, false})
            for (const std::size_t n : {std::size_t{10}, 200 / k}) {
                fake_ensemble e;
                std::vector<client> all = connected_clients(e, one_process ? 1 : n);
                for (std::size_t i = 0; i < k; ++i) e.create("/locks/" + std::to_string(i));
                const cost c =
                    cost_of_users(e, n, [&](std::size_t i) { return pass_all(of_k(all[one_process ? 0 : i], k)); });
                INFO(n << (one_process ? " coroutines of one process, " : " processes, ") << k << " locks: " << c);
                CHECK(c.writes <= 2 * k * n);  // a create and a removal of each lock
                // Whoever gets a later lock finds its queue empty.
                CHECK(c.listings <= (one_process ? (k - 1) * n + 2 * k : 2 * k * n));
                CHECK(c.requests <= (one_process ? (3 * k - 1) * n + 4 * k : 6 * k * n));
                CHECK(c.bytes <= (one_process ? 600 * k * n : 80 * n * n + 1000 * k * n));
                CHECK(c.watches == 0);
                CHECK(c.ephemerals == 0);
                close_all(e, all);
            }
}

TEST_CASE("cost of a semaphore: a request that waits for many permits, for each release", "[numbers]") {
    const auto processor_time = [](int n) {
        constexpr int releases = 20;
        fake_ensemble e;
        e.step_time(1us);
        std::vector<client> all = connected_clients(e, 2);
        auto hold = [](semaphore s, std::vector<lock_guard>& held) -> asio::awaitable<void> {
            held = co_await s.acquire_each(40);
        };
        std::vector<lock_guard> held;
        e.run(hold(semaphore(all[0], "/s", permits::fixed(n + 10)), held));
        auto wait = [](semaphore s, int wanted) -> asio::awaitable<void> {
            const lock_guard guard = co_await s.acquire(wanted);
        };
        running waits(e.get_executor(), wait(semaphore(all[1], "/s", permits::fixed(n + 10)), n));
        e.run_for(1s);
        const cost_meter meter(e);
        const std::clock_t begin = std::clock();
        for (int i = 0; i < releases; ++i) {
            held.pop_back();
            e.run_for(1ms);
        }
        const std::clock_t used = std::clock() - begin;
        const cost c = meter.read();
        INFO(n << " permits, " << releases << " releases: " << c);
        CHECK_FALSE(waits.ended());
        CHECK(c.writes == releases);
        CHECK(c.listings <= releases);
        CHECK(c.requests <= 3 * releases);
        CHECK(c.bytes <= static_cast<std::uint64_t>(releases * (70 * n)));  // a listing of all permits
        held.clear();
        e.run(waits.code());
        close_all(e, all);
        return used;
    };
    const std::clock_t few = processor_time(500), many = processor_time(4000);
    CHECK(many <= 24 * few);  // eight times as much, if the time is in proportion to the permits
}

}  // namespace locks_cost_tests
