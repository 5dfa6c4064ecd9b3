#include "interop/contender.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/locks/semaphore.hpp>

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;

namespace {

std::string ask(const std::string& path, int max) { return "semaphore " + path + " " + std::to_string(max); }

our_contender ours(semaphore s, asio::any_io_executor executor, int n = 1) {
    return our_contender(std::move(executor), [s, n] { return s.acquire(n); });
}

asio::awaitable<void> until_leases(client zk, std::string path, std::size_t n) {
    return until_queued(std::move(zk), path + "/leases", n);
}

// The leases of those who have permits are the first ones; behind them, the request that is being served.
asio::awaitable<bool> within(client zk, semaphore s, std::string node, std::size_t max) {
    co_await zk.sync(s.path());
    const std::vector<contender_info> list = co_await s.holders();
    const auto mine = std::find_if(list.begin(), list.end(), [&](const contender_info& c) { return c.path == node; });
    co_return mine != list.end() && static_cast<std::size_t>(mine - list.begin()) < max;
}

}  // namespace

TEST_CASE("Curator's semaphore: ours waits for theirs, and theirs for ours, in turn") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-semaphore");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator");
        co_await curator.ready();
        const semaphore s(zk, dir, permits::fixed(2));
        lock_guard held = co_await s.acquire();
        curator.send("a acquire " + ask(dir, 2));
        co_await curator.acquired("a");
        our_contender waiting = ours(s, executor);
        waiting.join();
        co_await until_leases(zk, dir, 3);
        curator.send("b acquire " + ask(dir, 2));
        co_await until_queued(zk, dir + "/locks", 2);
        curator.send("c try 300 " + ask(dir, 2));
        co_await curator.expect("c", "timeout");
        CHECK_FALSE(waiting.has_it());
        curator.send("a release");
        co_await waiting.acquired();
        co_await until_leases(zk, dir, 3);  // Curator's second
        CHECK_FALSE(curator.answered("b"));
        const auto nothing = co_await s.try_acquire();
        CHECK_FALSE(nothing);
        co_await held.release();
        co_await curator.acquired("b");
        co_await waiting.release();
        co_await until_leases(zk, dir, 1);
        const auto free = co_await s.try_acquire();
        CHECK(free);
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's semaphore: our request for two permits waits until two are returned") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-semaphore-two");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator");
        co_await curator.ready();
        const semaphore s(zk, dir, permits::fixed(3));
        for (const std::string id : {"a", "b", "c"}) {
            curator.send(id + " acquire " + ask(dir, 3));
            co_await curator.acquired(id);
        }
        our_contender two = ours(s, executor, 2);
        two.join();
        co_await until_leases(zk, dir, 5);
        co_await told_all(zk, dir);
        CHECK_FALSE(two.has_it());
        curator.send("late acquire " + ask(dir, 3));  // one permit, but it came later
        co_await until_queued(zk, dir + "/locks", 2);
        curator.send("b release");
        co_await curator.expect("b", "released");
        co_await until_leases(zk, dir, 4);
        co_await told_all(zk, dir);
        CHECK_FALSE(two.has_it());
        CHECK_FALSE(curator.answered("late"));
        curator.send("a release");
        co_await two.acquired();
        co_await until_leases(zk, dir, 4);  // two are ours, one Curator's, and one waits
        CHECK_FALSE(curator.answered("late"));
        co_await two.release();
        co_await curator.acquired("late");
        co_await until_leases(zk, dir, 2);
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's semaphore: it gets what we return one by one") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-semaphore-each");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        const semaphore s(zk, dir, permits::fixed(2));
        std::vector<lock_guard> guards = co_await s.acquire_each(2);
        for (const std::string id : {"a", "b"}) {
            curator.send(id + " acquire " + ask(dir, 2));
            co_await until_leases(zk, dir, 3);
            CHECK_FALSE(curator.answered(id));
            co_await guards.back().release();
            guards.pop_back();
            co_await curator.acquired(id);
            co_await until_leases(zk, dir, 2);
        }
        const auto nothing = co_await s.try_acquire();
        CHECK_FALSE(nothing);
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's InterProcessSemaphoreMutex is our semaphore with one permit") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-semaphore-mutex");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator");
        co_await curator.ready();
        const semaphore s(zk, dir, permits::fixed(1));
        curator.send("a acquire semaphore-mutex " + dir);
        co_await curator.acquired("a");
        our_contender waiting = ours(s, executor);
        waiting.join();
        co_await until_leases(zk, dir, 2);
        co_await told_all(zk, dir);
        CHECK_FALSE(waiting.has_it());
        curator.send("a release");
        co_await curator.expect("a", "released");
        co_await waiting.acquired();
        curator.send("a acquire semaphore-mutex " + dir);
        co_await until_leases(zk, dir, 2);
        CHECK_FALSE(curator.answered("a"));
        co_await waiting.release();
        co_await curator.acquired("a");
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's semaphore: under load never more permits are out than there are") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-semaphore-load");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options()), outside(executor, options());
        peer curator(executor, "curator");
        co_await curator.ready();
        constexpr int max = 3, rounds = 25;
        int inside = 0, most = 0;
        const semaphore seen(outside, dir, permits::fixed(max));
        auto load = [&](contender& who, int n) -> asio::awaitable<void> {
            for (int i = 0; i < rounds; ++i) {
                who.join();
                const std::string node = co_await who.acquired();
                inside += n;
                most = std::max(most, inside);
                CHECK(inside <= max);
                const bool first = co_await within(outside, seen, node, max);
                CHECK(first);
                // As a rule until all are out, and somebody waits.
                std::size_t leases = 0;
                for (int looks = 0; looks < 15 && leases <= max; ++looks)
                    leases = co_await count_children(outside, dir + "/leases");
                inside -= n;
                co_await who.release();
            }
        };
        const semaphore here(zk, dir, permits::fixed(max)), there(second, dir, permits::fixed(max));
        std::vector<std::unique_ptr<contender>> all;
        std::vector<running> tasks;
        for (int i = 0; i < 3; ++i) {
            const int n = 1 + i % 2;
            all.push_back(std::make_unique<our_contender>(ours(here, executor, n)));
            tasks.emplace_back(executor, load(*all.back(), n));
            all.push_back(std::make_unique<our_contender>(ours(there, executor)));
            tasks.emplace_back(executor, load(*all.back(), 1));
            for (const std::string more : {"x", "y"}) {
                all.push_back(std::make_unique<peer_contender>(curator, more + std::to_string(i), "semaphore", dir,
                                                               std::to_string(max)));
                tasks.emplace_back(executor, load(*all.back(), 1));
            }
        }
        while (!std::all_of(tasks.begin(), tasks.end(), [](const running& r) { return r.ended(); })) {
            const std::size_t leases = co_await count_children(outside, dir + "/leases");
            CHECK(leases <= max + 2);  // with the request that is being served
        }
        for (const running& t : tasks) {
            const std::exception_ptr failed = co_await t.end();
            if (failed) std::rethrow_exception(failed);
        }
        CHECK(most == max);
        co_await until_leases(zk, dir, 0);
        co_await until_queued(zk, dir + "/locks", 0);
        co_await curator.exit();
        co_await second.close();
        co_await outside.close();
    };
    with_client_for(180s, options(), body);
}
