// The work under a lock that asks for it again.

#include "support/lock_checks.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("lock_owner: without one, a body that acquires its own lock again is told so") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-deadlock");
        const mutex lock(zk, dir + "/m");
        const shared_mutex rw(zk, dir + "/rw");
        auto work = [&](lock_guard&) -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        const std::string text = co_await message_of(lock.with_lock(work));
        CHECK(text.starts_with("acquire " + dir + "/m: "));
        const std::error_code c = co_await code_of(lock.with_lock(work));
        CHECK(c == errc::would_deadlock);
        auto upgrade = [&](lock_guard&) -> asio::awaitable<void> { (void)co_await rw.acquire(); };
        const std::error_code shared = co_await code_of(rw.with_shared_lock(upgrade));
        CHECK(shared == errc::would_deadlock);
        std::optional<bool> second;
        auto trying = [&](lock_guard&) -> asio::awaitable<void> {
            const auto guard = co_await lock.try_acquire();
            second = guard.has_value();
        };
        co_await lock.with_lock(trying);
        CHECK(second == false);
        bool read = false;
        auto share = [&](lock_guard&) -> asio::awaitable<void> {
            const lock_guard guard = co_await rw.acquire_shared();
            read = guard.held();
        };
        co_await rw.with_shared_lock(share);
        CHECK(read);
        co_await until_queued(zk, dir + "/m", 0);
        co_await until_queued(zk, dir + "/rw", 0);
    };
    with_client(body);
}

TEST_CASE(
    "the work under a lock that asks for it again is told so, also by way of several locks at once and of the simple "
    "lock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-itself");
        const mutex a(zk, dir + "/a"), b(zk, dir + "/b");
        multi_mutex both(zk);
        both.add(a).add(b);
        const unfair_mutex simple(zk, dir + "/simple");
        auto under_a = [&](lock_guard&) -> asio::awaitable<void> {
            const std::string text = co_await message_of(both.acquire());
            CHECK(text.find("the work under this lock acquires the lock again") != std::string::npos);
            CHECK(text.find(a.path()) != std::string::npos);
            std::optional<lock_guard> tried = co_await both.try_acquire();
            CHECK_FALSE(tried);
            tried = co_await both.try_acquire_for(0s);
            CHECK_FALSE(tried);
        };
        co_await a.with_lock(under_a);
        auto under_simple = [&](lock_guard&) -> asio::awaitable<void> {
            const std::error_code code = co_await code_of(simple.acquire());
            CHECK(code == errc::would_deadlock);
        };
        co_await simple.with_lock(under_simple);
        co_await until_queued(zk, a.path(), 0);
        co_await until_queued(zk, b.path(), 0);
        lock_guard afterwards = co_await both.acquire();
        CHECK(afterwards.held());
    };
    with_client(body);
}

TEST_CASE(
    "the work under a lock that asks for it again is told so, also when it can be revoked, and by a multi_mutex") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-itself");
        const mutex lock(zk, dir + "/m");
        const unfair_mutex flag(zk, dir + "/n");
        multi_mutex both(zk);
        both.add(mutex(zk, dir + "/a")).add(lock).add(flag);
        auto again = [&](lock_guard&) -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        std::error_code c = co_await code_of(lock.with_lock(again, revocation_policy::cancel_after(1h)));
        CHECK(c == errc::would_deadlock);
        auto as_member = [&](lock_guard&) -> asio::awaitable<void> { (void)co_await both.acquire(); };
        c = co_await code_of(lock.with_lock(as_member));
        CHECK(c == errc::would_deadlock);
        c = co_await code_of(flag.with_lock(as_member));
        CHECK(c == errc::would_deadlock);
        co_await both.with_lock([](lock_guard&) -> asio::awaitable<void> { co_return; });
    };
    with_client(body);
}

TEST_CASE("lock_owner: somebody else's coroutine may wait while a body runs") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-no-deadlock");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        bool stop = false;
        auto work = [&](lock_guard&) -> asio::awaitable<void> {
            auto stopped = [&]() -> asio::awaitable<bool> { co_return stop; };
            co_await eventually(stopped);
        };
        running holding(executor, lock.with_lock(work));
        co_await until_queued(zk, dir, 1);
        taker other(executor, lock.acquire());
        co_await until_queued(zk, dir, 2);
        stop = true;
        co_await other.got();
        const std::exception_ptr e = co_await holding.end();
        CHECK_FALSE(e);
    };
    with_client(body);
}
