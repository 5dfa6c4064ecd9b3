// What try_acquire and time limits mean, for locks of every kind.

#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <functional>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// The ways to try one lock.
struct tries {
    std::string name;
    std::function<asio::awaitable<std::optional<lock_guard>>()> now;
    std::function<asio::awaitable<std::optional<lock_guard>>(std::chrono::nanoseconds)> within;
    std::function<asio::awaitable<std::optional<lock_guard>>(boot_clock::time_point)> until;
};

template <class Lock>
tries tries_of(std::string name, Lock lock) {
    tries t;
    t.name = std::move(name);
    t.now = [lock] { return lock.try_acquire(); };
    t.within = [lock](std::chrono::nanoseconds limit) { return lock.try_acquire_for(limit); };
    t.until = [lock](boot_clock::time_point end) { return lock.try_acquire_until(end); };
    return t;
}

// Locks of every kind below `dir`, which do not get in each other's way.
std::vector<tries> tries_of_every_kind(const client& zk, const std::string& dir) {
    std::vector<tries> all;
    const shared_mutex rw(zk, dir + "/rw"), readers(zk, dir + "/readers");
    multi_mutex several(zk);
    several.add(mutex(zk, dir + "/o1")).add(semaphore(zk, dir + "/o2", permits::fixed(1)));
    all.push_back(tries_of("mutex", mutex(zk, dir + "/mutex")));
    all.push_back(tries_of("writer", rw));
    all.push_back(tries_of("semaphore", semaphore(zk, dir + "/semaphore", permits::fixed(1))));
    all.push_back(tries_of("unfair", unfair_mutex(zk, dir + "/flag")));
    all.push_back(tries_of("several", several));
    tries shared;
    shared.name = "reader";
    shared.now = [readers] { return readers.try_acquire_shared(); };
    shared.within = [readers](std::chrono::nanoseconds limit) { return readers.try_acquire_shared_for(limit); };
    shared.until = [readers](boot_clock::time_point end) { return readers.try_acquire_shared_until(end); };
    all.push_back(std::move(shared));
    return all;
}

}  // namespace

TEST_CASE("try_acquire and time limits mean the same for locks of every kind", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-tries");
        const test_client other(co_await asio::this_coro::executor, options());
        co_await other.connected();
        const std::vector<tries> ours = tries_of_every_kind(zk, dir), theirs = tries_of_every_kind(other, dir);
        const std::chrono::nanoseconds no_time(0), least = std::chrono::nanoseconds::min(),
                                                   most = std::chrono::nanoseconds::max();
        const auto past = boot_clock::now() - 1s, first = boot_clock::time_point::min(),
                   last = boot_clock::time_point::max();
        for (std::size_t i = 0; i < ours.size(); ++i) {
            const tries& t = ours[i];
            // A free lock is had, without time and without a limit. From one attempt to the next it has to be free
            // again.
            std::optional<lock_guard> guard = co_await t.now();
            CHECK((guard && guard->held()));
            if (guard) co_await guard->release();
            for (const std::chrono::nanoseconds limit : {no_time, most}) {
                guard = co_await t.within(limit);
                CHECK((guard && guard->held()));
                if (guard) co_await guard->release();
            }
            for (const boot_clock::time_point end : {past, first, last}) {
                guard = co_await t.until(end);
                CHECK((guard && guard->held()));
                if (guard) co_await guard->release();
            }
            // One that somebody has is not.
            if (t.name != "reader") {
                guard = co_await theirs[i].now();
                REQUIRE(guard);
                for (const tries* who : {&t, &theirs[i]}) {
                    auto second = co_await who->now();
                    CHECK_FALSE(second);
                    second = co_await who->within(no_time);
                    CHECK_FALSE(second);
                    second = co_await who->until(first);
                    CHECK_FALSE(second);
                }
                co_await guard->release();
            }
            // What is wrong is said by the awaitable, not by the call.
            for (const std::chrono::nanoseconds limit : {std::chrono::nanoseconds(-1), least}) {
                std::optional<asio::awaitable<std::optional<lock_guard>>> attempt;
                CHECK_NOTHROW(attempt.emplace(t.within(limit)));
                if (!attempt) continue;
                const std::error_code c = co_await code_of(std::move(*attempt));
                CHECK(c == errc::invalid_argument);
            }
        }
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("without a connection, try_acquire waits for one, and an attempt without time does not") {
    test_loop loop;
    const std::string nowhere = "127.0.0.1:" + std::to_string(free_port());
    const test_client patient(loop.executor(), options(nowhere).connection_timeout(1h));
    const test_client zk(loop.executor(), options(nowhere).connection_timeout(200ms));
    auto body = [&]() -> asio::awaitable<void> {
        for (const tries& t : tries_of_every_kind(patient, "/test-nowhere")) {
            std::error_code c = co_await code_of(t.within(0ns));
            CHECK(c == errc::not_connected);
            c = co_await code_of(t.until(boot_clock::time_point::min()));
            CHECK(c == errc::not_connected);
            c = co_await code_of(t.within(50ms));
            CHECK(c == errc::not_connected);
            c = co_await code_of(t.within(-1ns));
            CHECK(c == errc::invalid_argument);
        }
        for (const tries& t : tries_of_every_kind(zk, "/test-nowhere")) {
            const auto began = boot_clock::now();
            const std::error_code c = co_await code_of(t.now());
            CHECK(c == errc::not_connected);
            CHECK(boot_clock::now() - began >= 150ms);
        }
        co_await patient.close();
        co_await zk.close();
    };
    loop.run(body());
}
