#include "support/lock_checks.hpp"

#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <functional>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Whatever is watched at a path: the guard's own node is, once its lease has been looked after.
asio::awaitable<void> until_watched(std::string path) {
    auto watched = [&]() -> asio::awaitable<bool> { co_return !watched_below(path).empty(); };
    co_await eventually(watched);
}

asio::awaitable<void> never() {
    asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

TEST_CASE("revocation: revoke() completes revoke_requested()") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
        running first(executor, ask()), second(executor, ask());
        co_await until_watched(guard.path());
        CHECK_FALSE(first.ended());
        const std::vector<contender_info> all = co_await mutex(other, dir).contenders();
        REQUIRE(all.size() == 1);
        co_await revoke(other, all[0].path);
        for (const running* r : {&first, &second}) {
            const std::exception_ptr e = co_await r->end();
            CHECK_FALSE(e);
        }
        CHECK(guard.held());  // nothing follows by itself
        const node_data node = co_await zk.get(guard.path());
        CHECK(node.data == "__REVOKE__");  // Curator's
        co_await guard.revoke_requested();  // written before we ask
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("revocation: a node that is no contender's keeps its data") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revocation-of-directory");
        const mutex lock(zk, dir + "/m");
        lock_guard guard = co_await lock.acquire();
        co_await zk.set(lock.path(), "precious");
        const std::string text = co_await message_of(revoke(zk, lock.path()));
        CHECK(text == "revoke " + lock.path() +
                          ": invalid argument (no contender's node, which would end with a session: contenders() tells "
                          "them)");
        const node_data kept = co_await zk.get(lock.path());
        CHECK(kept.data == "precious");
        co_await guard.release();
    };
    with_client(body);
}

TEST_CASE("revocation: asking for a node that is gone is no error") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-gone");
        co_await revoke(zk, dir + "/nobody");
        const std::error_code c = co_await code_of(revoke(zk, "relative"));
        CHECK(c == errc::invalid_path);
    };
    with_client(body);
}

TEST_CASE("revocation: a waiter that was asked finds out when it has the lock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-waiter");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard holder = co_await lock.acquire();
        taker waiting(executor, lock.acquire());
        co_await until_queued(zk, dir, 2);
        const std::vector<contender_info> all = co_await lock.contenders();
        co_await revoke(zk, all[1].path);
        CHECK_FALSE(waiting.ended());
        co_await holder.release();
        co_await waiting.got();
        co_await waiting.guard().revoke_requested();
    };
    with_client(body);
}

TEST_CASE("revocation: other data in the node does not count") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-other-data");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
        running asking(executor, ask());
        for (const char* text : {"hello", "", "__REVOKE", "__REVOKE__ "}) {
            co_await until_watched(guard.path());
            co_await zk.set(guard.path(), text);
            co_await turns(30);
            CHECK_FALSE(asking.ended());
        }
        co_await until_watched(guard.path());
        co_await revoke(zk, guard.path());
        const std::exception_ptr e = co_await asking.end();
        CHECK_FALSE(e);
    };
    with_client(body);
}

TEST_CASE("revocation: revoke_requested() fails when the lock is lost first") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-lost");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        {
            const lock_guard guard = co_await lock.acquire();
            auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
            running asking(executor, ask());
            co_await until_watched(guard.path());
            co_await zk.remove(guard.path());
            const std::error_code c = co_await asking.code();
            CHECK(c == errc::lock_lost);
            const std::error_code later = co_await code_of(ask());
            CHECK(later == errc::lock_lost);
        }
        const test_client victim(executor, options());
        const mutex theirs(victim, dir);
        const lock_guard guard = co_await theirs.acquire();
        auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
        running asking(executor, ask());
        co_await until_watched(guard.path());
        co_await expire_session(victim);
        const std::error_code c = co_await asking.code();
        CHECK(c == errc::lock_lost);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("revocation: revoke_requested() of a guard that is released meanwhile, or was before") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-released");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard guard = co_await lock.acquire();
        auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
        running asking(executor, ask());
        co_await until_watched(guard.path());
        co_await guard.release();
        const std::error_code meanwhile = co_await asking.code();
        CHECK(meanwhile == errc::lock_released);
        const std::error_code before = co_await code_of(ask());
        CHECK(before == errc::lock_released);
    };
    with_client(body);
}

TEST_CASE("revocation: a cancelled revoke_requested() leaves no watch") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-cancel");
        const mutex lock(zk, dir);
        {
            const lock_guard guard = co_await lock.acquire();
            auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
            const int cancelled = co_await cancel_everywhere(ask, 60);
            CHECK(cancelled == 60);
            auto unwatched = [&]() -> asio::awaitable<bool> {
                co_return watched_below(dir).empty() &&
                    zk.inside().watches() == 0;  // not even the lease's, which is too young
            };
            co_await eventually(unwatched);
            CHECK(guard.held());
        }
        co_await until_queued(zk, dir, 0);
        co_await until_quiet(zk, dir);
    };
    with_client(options().session_timeout(paced(30s)), body);
}

TEST_CASE("revocation: with_lock cancels its body after the grace") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-with-lock");
        const mutex lock(zk, dir);
        constexpr auto grace = 40ms;
        std::optional<boot_clock::time_point> asked, cancelled;
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            asked = boot_clock::now();
            co_await revoke(zk, guard.path());
            try {
                co_await never();
            } catch (const std::system_error& e) {
                CHECK(e.code() == condition::cancelled);
                CHECK(guard.held());
                cancelled = boot_clock::now();
                throw;
            }
        };
        const std::string text = co_await message_of(lock.with_lock(work, revocation_policy::cancel_after(grace)));
        CHECK(text.starts_with("with_lock " + dir + "/_c_"));
        REQUIRE(cancelled);
        CHECK(*cancelled - *asked >= grace);
        co_await until_queued(zk, dir, 0);
        const std::error_code c = co_await code_of(lock.with_lock(work, revocation_policy::cancel_after(0ms)));
        CHECK(c == errc::revoked);
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

TEST_CASE("revocation: what a body makes of its cancellation is nested in the revocation") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-nested");
        const mutex lock(zk, dir);
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await revoke(zk, guard.path());
            bool stopped = false;
            try {
                co_await never();
            } catch (const std::system_error&) {
                stopped = true;
            }
            if (stopped) throw std::runtime_error("half done");
        };
        std::string outer, inner;
        try {
            co_await lock.with_lock(work, revocation_policy::cancel_after(1ms));
        } catch (const std::exception& e) {
            outer = e.what();
            try {
                std::rethrow_if_nested(e);
            } catch (const std::exception& nested) {
                inner = nested.what();
            }
        }
        CHECK(outer.starts_with("with_lock " + dir + "/_c_"));
        CHECK(inner == "half done");
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

TEST_CASE("revocation: a body that ends within the grace is not disturbed") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-in-time");
        const mutex lock(zk, dir);
        bool finished = false;
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await revoke(zk, guard.path());
            co_await guard.revoke_requested();
            co_await turns(5);
            CHECK(guard.held());
            finished = true;
        };
        co_await lock.with_lock(work, revocation_policy::cancel_after(60s));
        CHECK(finished);
        auto throwing = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await revoke(zk, guard.path());
            throw std::runtime_error("mine");
        };
        const std::string text = co_await message_of(lock.with_lock(throwing, revocation_policy::cancel_after(60s)));
        CHECK(text == "mine");
        auto undisturbed = [](lock_guard&) -> asio::awaitable<void> { co_return; };
        co_await lock.with_lock(undisturbed, revocation_policy::cancel_after(0ms));
        co_await until_queued(zk, dir, 0);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("revocation: with_lock ignores it unless told otherwise") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-ignored");
        const mutex lock(zk, dir);
        bool finished = false;
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await revoke(zk, guard.path());
            co_await guard.revoke_requested();
            co_await turns(100);
            finished = guard.held();
        };
        co_await lock.with_lock(work);
        CHECK(finished);
    };
    with_client(body);
}

TEST_CASE("revocation: a lock that is lost under with_lock is lost, not revoked") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-lost-with-lock");
        const mutex lock(zk, dir);
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await zk.remove(guard.path());
            co_await never();
        };
        const std::error_code c = co_await code_of(lock.with_lock(work, revocation_policy::cancel_after(0ms)));
        CHECK(c == errc::lock_lost);
    };
    with_client(body);
}

TEST_CASE("revocation: any node of a semaphore's or multi_mutex's guard will do, and any kind of lock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "revoke-kinds");
        const semaphore s(zk, dir + "/s", permits::fixed(3));
        multi_mutex both(zk);
        both.add(mutex(zk, dir + "/a")).add(mutex(zk, dir + "/b"));
        const shared_mutex rw(zk, dir + "/rw");
        const unfair_mutex flag(zk, dir + "/flag");
        std::vector<lock_guard> guards;
        guards.push_back(co_await s.acquire(3));
        guards.push_back(co_await both.acquire());
        guards.push_back(co_await rw.acquire_shared());
        guards.push_back(co_await flag.acquire());
        const auto executor = co_await asio::this_coro::executor;
        for (const lock_guard& guard : guards) {
            auto ask = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
            running asking(executor, ask());
            for (const std::string& path : guard.paths()) co_await until_watched(path);
            CHECK_FALSE(asking.ended());
            co_await revoke(zk, guard.paths().back());
            const std::exception_ptr e = co_await asking.end();
            CHECK_FALSE(e);
        }
        guards.clear();
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await revoke(zk, guard.paths().back());
            co_await never();
        };
        const auto at_once = revocation_policy::cancel_after(0ms);
        std::error_code c = co_await code_of(s.with_permit(work, at_once));
        CHECK(c == errc::revoked);
        c = co_await code_of(both.with_lock(work, at_once));
        CHECK(c == errc::revoked);
        c = co_await code_of(rw.with_shared_lock(work, at_once));
        CHECK(c == errc::revoked);
        c = co_await code_of(flag.with_lock(work, at_once));
        CHECK(c == errc::revoked);
        for (const char* name : {"/s/leases", "/s/locks", "/a", "/b", "/rw"}) co_await until_queued(zk, dir + name, 0);
        auto gone = [&]() -> asio::awaitable<bool> {
            const auto node = co_await zk.exists(flag.path());
            co_return !node;
        };
        co_await eventually(gone);
    };
    with_client(body);
}
