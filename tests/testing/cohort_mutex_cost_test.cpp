// What cohort_mutex costs the servers, and how a cohort and its neighbours share a lock.

#include "testing/cohort_mutex_scene.hpp"
#include "testing/cost.hpp"

#include <zkasio/locks/mutex.hpp>

#include <deque>

namespace cohort_mutex_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace zkasio::test::cohort;

namespace {

asio::awaitable<void> all_of(std::vector<running>& tasks) {
    for (running& task : tasks) {
        const std::exception_ptr failed = co_await task.end();
        CHECK_FALSE(failed);
    }
    tasks.clear();
}

}  // namespace

TEST_CASE("cost of cohort_mutex: n coroutines of one process, whatever n is", "[numbers][cohort]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        const client zk = e.client(rare_heartbeats(e));
        witness all(e);
        auto body = [&]() -> asio::awaitable<void> {
            e.create(path);
            const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h));
            const cost_meter meter(e);
            std::vector<running> tasks;
            for (std::size_t i = 0; i < n; ++i) tasks.emplace_back(e.get_executor(), all.work(lock, 3, "a"));
            co_await turns(e, 3);
            CHECK(meter.read().ephemerals <= 1);  // those that wait have no node
            co_await all_of(tasks);
            co_await pause(e, 10s);
            const cost c = meter.read();
            INFO(n << " coroutines: " << c);
            CHECK(c.writes == 1);    // the place
            CHECK(c.listings <= 3);  // with the create, a look, and a look with a watch
            CHECK(c.requests <= 5);  // and the watch of the node
            CHECK(c.watches == 2);
            CHECK(c.ephemerals == 1);
            CHECK(c.bytes < 3000);
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cost of cohort_mutex: n processes that each take their turns once", "[numbers][cohort]") {
    for (const std::size_t n : {10u, 100u}) {  // 1000 clients, each with a link of its own, take minutes
        fake_ensemble e;
        std::deque<client> clients;
        std::deque<cohort_mutex> locks;
        for (std::size_t i = 0; i < n; ++i) {
            clients.push_back(e.client(rare_heartbeats(e)));
            locks.emplace_back(clients.back(), path, cohort_mutex_options().tenure(1h));
        }
        witness all(e);
        auto body = [&]() -> asio::awaitable<void> {
            for (const client& zk : clients) co_await zk.connected();
            e.create(path);
            const cost_meter meter(e);
            std::vector<running> tasks;
            for (const cohort_mutex& lock : locks)
                for (int k = 0; k < 10; ++k) tasks.emplace_back(e.get_executor(), all.work(lock, 1, "x", 1ms));
            co_await all_of(tasks);
            co_await pause(e, 10s);  // the last place has lingered
            const cost c = meter.read();
            INFO(n << " processes: " << c);
            CHECK(c.writes <= 2 * n);    // a place each, for ten turns: as one waiter of a mutex
            CHECK(c.listings <= 5 * n);
            CHECK(c.requests <= 10 * n);
            CHECK(c.bytes <= 120 * n * n + 1500 * n);  // each listing has all names
            CHECK(c.watches == 0);
            CHECK(c.ephemerals == 0);
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cost of cohort_mutex: n locks that one process keeps while nobody wants them", "[numbers][cohort]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        const client zk = e.client(rare_heartbeats(e));
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            std::vector<cohort_mutex> locks;
            for (std::size_t i = 0; i < n; ++i) {
                const std::string dir = "/locks-" + std::to_string(i);
                e.create(dir);
                locks.emplace_back(zk, dir, cohort_mutex_options().linger(10s));
            }
            const cost_meter meter(e);
            for (const cohort_mutex& lock : locks) const lock_guard guard = co_await lock.acquire();
            co_await pause(e, 1s);
            cost c = meter.read();
            INFO(n << " locks: " << c);
            CHECK(c.writes == n);
            CHECK(c.bytes <= 900 * n);
            CHECK(c.requests <= 4 * n);  // the create and its listing; a listing, and a read, with a watch each
            CHECK(c.ephemerals == static_cast<std::int64_t>(n));
            CHECK(c.watches <= static_cast<std::int64_t>(2 * n));
            co_await pause(e, 20s);
            c = meter.read();
            CHECK(c.writes == 2 * n);
            CHECK(c.requests <= 7 * n);  // the removals, of nodes and of watches
            CHECK(c.ephemerals == 0);
            CHECK(c.watches == 0);
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: a mutex beside a busy cohort waits for one tenure, in the same client and in another",
          "[cohort]") {
    for (const bool same_client : {false, true})
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            INFO((same_client ? "the same client" : "two clients") << ", seed " << seed);
            fake_ensemble e(seed);
            const client one = e.client(calm()), two = e.client(calm());
            witness all(e);
            auto body = [&]() -> asio::awaitable<void> {
                co_await one.connected();
                co_await two.connected();
                const cohort_mutex busy(one, path);
                const mutex plain(same_client ? one : two, path);
                std::vector<running> tasks;
                for (int i = 0; i < 4; ++i) tasks.emplace_back(e.get_executor(), all.work(busy, 500, "a", 1ms));
                co_await pause(e, 50ms);
                for (int i = 0; i < 40; ++i) {
                    const auto begin = e.now();
                    lock_guard mine = co_await plain.acquire();
                    CHECK(e.now() - begin < 20ms + 1ms + 10ms);  // tenure(), the turn that ends it, some round trips
                    all.has(mine);
                    all.gives_up(mine);
                    co_await mine.release();
                }
                co_await all_of(tasks);
                co_await one.close();
                co_await two.close();
            };
            e.run(body);
            e.run_dry();
        }
}

TEST_CASE("cohort_mutex: a process whose connection breaks all the time holds others up no longer than its turns",
          "[cohort]") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client bad = e.client(calm()), good = e.client(calm());
        witness all(e);
        auto body = [&]() -> asio::awaitable<void> {
            co_await bad.connected();
            co_await good.connected();
            const cohort_mutex theirs(bad, path), ours(good, path);
            std::vector<running> tasks;
            for (int i = 0; i < 4; ++i) tasks.emplace_back(e.get_executor(), all.work(theirs, 200, "bad", 1ms));
            fake_ensemble::duration longest{0};
            for (int i = 0; i < 100; ++i) {
                if (i % 5 == 0) e.cut(bad);
                const auto begin = e.now();
                lock_guard mine = co_await ours.acquire();
                longest = std::max(longest, e.now() - begin);
                all.has(mine);
                co_await pause(e, 1ms);
                all.gives_up(mine);
                co_await mine.release();
                co_await pause(e, 20ms);
            }
            CHECK(longest < 1s);
            co_await all_of(tasks);
            co_await bad.close();
            co_await good.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: a process that falls silent holds others up for its session timeout, once", "[cohort]") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client bad = e.client(sessions_of_ten_seconds()), good = e.client(sessions_of_ten_seconds());
        auto body = [&]() -> asio::awaitable<void> {
            co_await good.connected();
            const cohort_mutex theirs(bad, path, cohort_mutex_options().linger(1h)), ours(good, path);
            {
                const lock_guard idle = co_await theirs.acquire();
            }
            co_await pause(e, 1s);
            e.silence(bad);
            const auto begin = e.now();
            {
                const lock_guard mine = co_await ours.acquire();
                CHECK(e.now() - begin < 12s);
            }
            for (int i = 0; i < 10; ++i) {
                const auto next = e.now();
                const lock_guard mine = co_await ours.acquire();
                CHECK(e.now() - next < 10ms);
            }
            e.let_in(bad);
            co_await bad.close();
            co_await good.close();
        };
        e.run(body);
        e.run_dry();
    }
}

}  // namespace cohort_mutex_cost_tests
