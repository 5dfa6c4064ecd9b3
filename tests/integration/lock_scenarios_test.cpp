// What holds for locks of every kind.

#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/path.hpp>
#include <zkasio/recipes/multi_mutex.hpp>
#include <zkasio/recipes/mutex.hpp>
#include <zkasio/recipes/semaphore.hpp>
#include <zkasio/recipes/shared_mutex.hpp>
#include <zkasio/recipes/unfair_mutex.hpp>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("locks of every kind work below a chroot, and are the same from above it") {
    auto prepare = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-chroot");
        co_await zk.create(dir + "/app");
    };
    with_client(prepare);
    auto body = [](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const test_client outside(executor, options());
        const std::string above = "/test-lock-chroot/app";
        const mutex lock(zk, "/mutex"), same(outside, above + "/mutex");
        lock_guard guard = co_await lock.acquire();
        CHECK(guard.path().starts_with("/mutex/_c_"));
        const auto nothing = co_await same.try_acquire();
        CHECK_FALSE(nothing);
        taker waiting(executor, same.acquire());
        co_await until_queued(zk, "/mutex", 2);
        taker local(executor, lock.acquire());
        co_await until_queued(zk, "/mutex", 3);
        const auto list = co_await lock.contenders();
        REQUIRE(list.size() == 3);
        CHECK(list.front().path == guard.path());
        transaction mark;
        mark.create("/mark");
        co_await guard.commit(mark);
        co_await guard.release();
        co_await waiting.got();
        waiting.release();
        co_await local.got();
        CHECK(local.guard().held());
        local.release();

        const shared_mutex readers(zk, "/shared"), writers(outside, above + "/shared");
        lock_guard writing = co_await readers.acquire();
        const lock_guard reading = co_await readers.downgrade(std::move(writing));
        const lock_guard beside = co_await writers.acquire_shared();
        const semaphore permits_here(zk, "/permits", permits::fixed(2)), permits_there(outside, above + "/permits", permits::fixed(2));
        const lock_guard one = co_await permits_here.acquire(), two = co_await permits_there.acquire();
        const auto third = co_await permits_here.try_acquire();
        CHECK_FALSE(third);
        multi_mutex both(zk);
        both.add(mutex(zk, "/m1")).add(mutex(zk, "/m2"));
        const lock_guard all = co_await both.acquire();
        CHECK(all.held());
        const unfair_mutex flag(zk, "/flag"), flag_there(outside, above + "/flag");
        const lock_guard mine = co_await flag.acquire();
        const auto theirs = co_await flag_there.try_acquire();
        CHECK_FALSE(theirs);
        co_await outside.close();
    };
    with_client(options(shared_servers() + "/test-lock-chroot/app"), body);
}

TEST_CASE("the directory of a lock disappears when nobody has used it for a while, and comes back") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-container");
        const mutex lock(zk, dir + "/lock");
        const shared_mutex shared(zk, dir + "/shared");
        const semaphore sem(zk, dir + "/semaphore", permits::fixed(2));
        for (int round = 0; round < 2; ++round) {
            for (int i = 0; i < 10; ++i) {
                const lock_guard a = co_await lock.acquire();
                const lock_guard b = co_await shared.acquire_shared();
                const lock_guard c = co_await sem.acquire();
                CHECK((a.held() && b.held() && c.held()));
            }
            auto gone = [&]() -> asio::awaitable<bool> {
                const std::size_t left = co_await count_children(zk, dir);
                co_return left == 0;
            };
            co_await eventually(gone, 60s);
        }
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("an acquire whose listing is refused fails, and leaves no node") {
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.add_auth("digest", "bob:secret");
        const std::string dir = co_await fresh_directory(zk, "lock-unlistable");
        create_options closed;
        closed.acl(acl{acl_entry(permission::all, digest_user("bob", "secret")),
                       acl_entry(permission::create | permission::remove, anyone())});
        co_await zk.create(dir + "/lock", bytes(), closed);
        co_await zk.create(dir + "/shared", bytes(), closed);
        const test_client stranger(co_await asio::this_coro::executor, options());
        const mutex lock(stranger, dir + "/lock");
        const shared_mutex shared(stranger, dir + "/shared");
        auto both = [&]() -> asio::awaitable<void> {
            const std::error_code first = co_await code_of(lock.acquire());
            CHECK(first == zk_errc::no_auth);
            const std::error_code second = co_await code_of(shared.acquire_shared());
            CHECK(second == zk_errc::no_auth);
        };
        co_await both();
        std::vector<running> many;
        for (int i = 0; i < 20; ++i) many.emplace_back(co_await asio::this_coro::executor, both());
        for (const running& t : many) co_await t.end();
        co_await until_queued(zk, dir + "/lock", 0);
        co_await until_queued(zk, dir + "/shared", 0);
        CHECK(stranger.state() == session_state::connected);
        co_await stranger.close();
        co_await zk.remove_recursive(dir);
    };
    with_client(body);
}
