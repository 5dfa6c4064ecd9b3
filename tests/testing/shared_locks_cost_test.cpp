// What n readers and writers of a shared_mutex, and n requests to a semaphore, cost the servers.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"
#include "testing/steps.hpp"

#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace shared_locks_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

asio::awaitable<void> hold_for(shared_mutex lock, lock_kind kind, std::chrono::nanoseconds time) {
    lock_guard guard = co_await lock.acquire(kind);
    co_await sleep_for(time);
    co_await guard.release();
}

asio::awaitable<void> hold_permit_for(semaphore permits, std::chrono::nanoseconds time) {
    lock_guard guard = co_await permits.acquire();
    co_await sleep_for(time);
    co_await guard.release();
}

}  // namespace

TEST_CASE("cost of a shared_mutex: readers, writers, and both, of a process each", "[numbers]") {
    enum class crowd {
        readers,
        writers,
        mixed
    };
    for (const crowd who : {crowd::readers, crowd::writers, crowd::mixed})
        for (const std::size_t n : client_counts()) {
            fake_ensemble e;
            std::vector<client> all = connected_clients(e, n);
            e.create("/rw");
            const cost c = cost_of_users(e, n, [&](std::size_t i) {
                const bool writes = who == crowd::writers || (who == crowd::mixed && i % 2 == 0);
                return hold_for(shared_mutex(all[i], "/rw"), writes ? lock_kind::exclusive : lock_kind::shared, 100ms);
            });
            INFO(n << (who == crowd::readers ? " readers: " : who == crowd::writers ? " writers: " : ", mixed: ") << c);
            CHECK(c.writes == 2 * n);  // a create and a removal each
            CHECK(c.listings <= (who == crowd::readers ? n : 2 * n + n / 10 + 5));
            CHECK(c.requests <= (who == crowd::readers ? 3 * n : 5 * n + n / 10 + 10));
            CHECK(c.bytes <= 110 * n * n + 1000 * n);  // each listing has all names
            CHECK(c.watches == 0);
            CHECK(c.ephemerals == 0);
            close_all(e, all);
        }
}

// Behind a writer of another process only a listing tells whether the lock is free (G21 in docs/lock-queue.md): the
// writer may have become a reader at its place, and other readers may have joined it there. Behind one of the same
// process, none is needed.
TEST_CASE("cost of a shared_mutex: many writers of two processes, a listing where the lock passes between them",
          "[numbers]") {
    for (const bool again : {false, true})
        for (const std::size_t n : user_counts) {
            if (again && n > 100) continue;  // takes seconds
            fake_ensemble e;
            std::vector<client> all = connected_clients(e, 2);
            e.create("/rw");
            std::size_t holder = 2, passed = 0;
            const auto write = [&](std::size_t i) -> asio::awaitable<void> {
                for (int times = again ? 3 : 1; times > 0; --times) {
                    lock_guard guard = co_await shared_mutex(all[i % 2], "/rw").acquire();
                    if (std::exchange(holder, i % 2) != i % 2) ++passed;
                    co_await guard.release();
                }
            };
            const cost c = cost_of_users(e, n, write);
            const std::size_t grants = again ? 3 * n : n;
            INFO(n << " writers" << (again ? ", each three times: " : ": ") << c << "; passed " << passed << " times");
            CHECK(c.writes == 2 * grants);
            CHECK(c.listings <= passed + 4);
            CHECK(c.requests <= 2 * grants + 3 * passed + 10);
            CHECK(c.bytes <= 60 * passed * n + 900 * grants);  // each listing has all names
            CHECK(c.watches == 0);
            CHECK(c.ephemerals == 0);
            close_all(e, all);
        }
}

TEST_CASE("cost of a shared_mutex: readers behind a writer wait for its node, and are let in together", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n + 1);
        e.create("/rw");
        running writer(e.get_executor(), hold_for(shared_mutex(all[n], "/rw"), lock_kind::exclusive, 1min));
        e.run_for(1s);
        const cost c = cost_of_users(
            e, n, [&](std::size_t i) { return hold_for(shared_mutex(all[i], "/rw"), lock_kind::shared, 100ms); });
        INFO(n << " readers behind a writer: " << c);
        CHECK(c.writes == 2 * n + 1);
        // Before the wait, and after it: the end of the writer's node does not tell whether it has become a reader, and
        // whether other nodes have its number.
        CHECK(c.listings <= 2 * n);
        CHECK(c.requests <= 5 * n + 2);
        CHECK(c.bytes <= 120 * n * n + 1000 * n);
        e.run(writer.code());
        close_all(e, all);
    }
}

TEST_CASE("cost of a semaphore: n processes for three permits", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/s/locks");
        e.create("/s/leases");
        const cost c = cost_of_users(
            e, n, [&](std::size_t i) { return hold_permit_for(semaphore(all[i], "/s", permits::fixed(3)), 100ms); });
        INFO(n << " processes: " << c);
        CHECK(c.writes == 4 * n);    // a place in the queue, and a permit: each a create and a removal
        CHECK(c.listings <= 4 * n);  // of the queue, and of at most four permits
        CHECK(c.requests <= 10 * n + 5);
        CHECK(c.bytes <= 80 * n * n + 2000 * n);  // each listing of the queue has all names
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        close_all(e, all);
    }
}

}  // namespace shared_locks_cost_tests
