// Many who want one lock. Counts, not times: for those see tests/bench.

#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("ten thousand coroutines of one process get the lock in order, with two requests each") {
    auto body = [](client zk) -> asio::awaitable<void> {
        constexpr std::size_t n = 10'000;
        const std::string dir = co_await fresh_directory(zk, "scale-one-process");
        const auto executor = co_await asio::this_coro::executor;
        const session s = co_await zk.current_session();
        const mutex lock(zk, dir);
        const long before = requests_of(s);
        std::vector<std::int32_t> order;
        int inside = 0;
        auto one = [&]() -> asio::awaitable<void> {
            lock_guard guard = co_await lock.acquire();
            if (++inside != 1) throw std::logic_error("two at a time");
            order.push_back(sequence_of(guard));
            --inside;
            co_await guard.release();
        };
        std::vector<running> tasks;
        for (std::size_t i = 0; i < n; ++i) tasks.emplace_back(executor, one());
        for (const running& t : tasks) {
            const std::error_code code = co_await t.code();
            if (code) FAIL(code.message());
        }
        CHECK(order.size() == n);
        CHECK(std::is_sorted(order.begin(), order.end()));
        const long requests = requests_of(s) - before;
        CHECK(requests <= static_cast<long>(2 * n + n / 20));
        const std::size_t left = co_await count_children(zk, dir);
        CHECK(left == 0);
    };
    with_client_for(200s, options(), body);
}

TEST_CASE("five thousand of ten thousand waiters give up at random: nobody hangs, the others keep their order",
          "[real-time]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        constexpr std::size_t n = 10'000;
        const std::string dir = co_await fresh_directory(zk, "scale-cancel");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard gate = co_await lock.acquire();
        std::vector<std::size_t> order;
        auto one = [&](std::size_t i) -> asio::awaitable<void> {
            const lock_guard guard = co_await lock.acquire();
            order.push_back(i);
        };
        std::vector<running> tasks;
        for (std::size_t i = 0; i < n; ++i) tasks.emplace_back(executor, one(i));
        co_await until_queued(zk, dir, n + 1, 120s);

        std::vector<std::size_t> leaving(n);
        std::iota(leaving.begin(), leaving.end(), 0u);
        std::minstd_rand random(42);
        std::shuffle(leaving.begin(), leaving.end(), random);
        leaving.resize(n / 2);
        const running releasing(executor, gate.release());  // the lock moves on while they go
        std::size_t cancelled = 0;
        for (const std::size_t i : leaving) {
            tasks[i].cancel();
            if (++cancelled % 50 == 0) co_await turns(1);
        }
        std::size_t gave_up = 0;
        for (const running& t : tasks) {
            const std::error_code code = co_await t.code();
            if (code == condition::cancelled)
                ++gave_up;
            else if (code)
                FAIL(code.message());
        }
        CHECK(gave_up > 1000);  // the others had it already
        CHECK(gave_up + order.size() >= n);
        CHECK(std::is_sorted(order.begin(), order.end()));
        const std::error_code released = co_await releasing.code();
        CHECK_FALSE(released);
        co_await until_queued(zk, dir, 0, 60s);
    };
    with_client_for(200s, options().ephemeral_budget(1'800'000), body);  // all are to have a node
}

TEST_CASE("five thousand of ten thousand readers and writers give up at random: nobody hangs", "[real-time]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        constexpr std::size_t n = 10'000;
        const std::string dir = co_await fresh_directory(zk, "scale-shared");
        const auto executor = co_await asio::this_coro::executor;
        const shared_mutex lock(zk, dir);
        std::optional<lock_guard> gate(co_await lock.acquire());
        int readers = 0, writers = 0;
        std::size_t done = 0;
        auto one = [&](bool write) -> asio::awaitable<void> {
            asio::awaitable<lock_guard> acquiring = write ? lock.acquire() : lock.acquire_shared();
            const lock_guard guard = co_await std::move(acquiring);
            struct presence {  // a holder may be cancelled, too
                int& n;
                explicit presence(int& in) : n(in) { ++n; }
                ~presence() { --n; }
            } const here(write ? writers : readers);
            if (writers > 1 || (writers == 1 && readers > 0)) throw std::logic_error("a writer is not alone");
            ++done;
            co_await turns(1);
        };
        std::minstd_rand random(43);
        std::vector<running> tasks;
        for (std::size_t i = 0; i < n; ++i) tasks.emplace_back(executor, one(random() % 20 == 0));
        co_await until_queued(zk, dir, n + 1, 120s);
        gate.reset();
        for (std::size_t i = 0; i < n; i += 2) {
            tasks[i].cancel();
            if (i % 100 == 0) co_await turns(1);
        }
        for (const running& t : tasks) {
            const std::error_code code = co_await t.code();
            if (code && code != condition::cancelled) FAIL(code.message());
        }
        CHECK(done >= n / 2);
        co_await until_queued(zk, dir, 0, 60s);
    };
    with_client_for(280s, options().ephemeral_budget(1'800'000), body);  // all are to have a node
}

TEST_CASE("three processes with a thousand waiters each finish, one at a time", "[real-process]") {
    constexpr int processes = 3, waiters = 1000;
    const std::string record = "/test-scale-record";
    auto prepare = [&](client zk) -> asio::awaitable<void> {
        co_await fresh_directory(zk, "scale-processes");
        co_await zk.remove_recursive(record);
        co_await zk.create(record, "0 0");
    };
    with_client(prepare);
    // Each holder writes what it read, one higher, and its own place in the queue: two at a time would not.
    auto work = [&](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, "/test-scale-processes");
        auto one = [&]() -> asio::awaitable<void> {
            lock_guard guard = co_await lock.acquire();
            const node_data seen = co_await zk.get(record);
            const std::size_t space = seen.data.find(' ');
            const long count = std::stol(seen.data), last = std::stol(seen.data.substr(space));
            if (count > 0 && last >= sequence_of(guard)) throw std::logic_error("out of order");
            const std::string next = std::to_string(count + 1) + ' ' + std::to_string(sequence_of(guard));
            co_await zk.set(record, next, seen.stat.version);
            co_await guard.release();
        };
        std::vector<running> tasks;
        for (int i = 0; i < waiters; ++i) tasks.emplace_back(executor, one());
        for (const running& t : tasks) {
            const std::exception_ptr failed = co_await t.end();
            if (failed) std::rethrow_exception(failed);
        }
    };
    std::vector<pid_t> children;
    for (int p = 0; p < processes; ++p) {
        const pid_t pid = ::fork();
        if (pid == 0) {  // no Catch2 in here: it would report what the parent does
            int status = 1;
            try {
                test_loop loop(250s);
                const client zk(loop.executor(), options());
                auto all = [&]() -> asio::awaitable<void> {
                    co_await work(zk);
                    co_await zk.close();
                };
                asio::co_spawn(loop.context(), all(), [&](std::exception_ptr e) {
                    if (e) ::_exit(2);  // not when all the others have waited in vain
                    status = 0;
                });
                loop.context().run_for(250s);
            } catch (...) {
            }
            ::_exit(status);
        }
        REQUIRE(pid > 0);
        children.push_back(pid);
    }
    for (const pid_t pid : children) {
        int status = 0;
        REQUIRE(::waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    auto check = [&](client zk) -> asio::awaitable<void> {
        const node_data end = co_await zk.get(record);
        CHECK(std::stol(end.data) == processes * waiters);
        co_await until_queued(zk, "/test-scale-processes", 0);
    };
    with_client(check);
}
