// What holds for locks of every kind.

#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/path.hpp>

#include <functional>
#include <random>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("locks of every kind work below a chroot, and are the same from above it", "[any-server]") {
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
        co_await until_queued(zk, "/mutex", 1);
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
        const semaphore permits_here(zk, "/permits", permits::fixed(2)),
            permits_there(outside, above + "/permits", permits::fixed(2));
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

TEST_CASE("two sessions take one lock a thousand times, in every way there is: the servers see one holder at a time") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-thousand");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        co_await other.connected();  // the time limits below are too short for that
        constexpr int wanted = 1000;
        int granted = 0;
        fencing_token last(0);
        auto task = [&](client on, unsigned seed) -> asio::awaitable<void> {
            const mutex lock(on, dir + "/lock");
            std::minstd_rand random(seed);
            while (granted < wanted) {
                const auto way = random() % 4;
                std::optional<lock_guard> guard;
                if (way == 0)
                    guard = co_await lock.try_acquire();
                else if (way == 1)
                    guard = co_await lock.try_acquire_for(std::chrono::microseconds(random() % 3000));
                else
                    guard.emplace(co_await lock.acquire());
                if (guard) {
                    ++granted;
                    CHECK(guard->token() > last);
                    last = guard->token();
                    co_await on.create(dir + "/inside");  // refused when somebody else is
                    co_await on.remove(dir + "/inside");
                    CHECK(guard->held());
                    if (random() % 2) co_await guard->release();
                }
                guard.reset();
                co_await turns(static_cast<int>(random() % 3));
            }
        };
        std::vector<running> tasks;
        for (unsigned i = 0; i < 10; ++i) tasks.emplace_back(executor, task(i % 2 ? client(zk) : client(other), i + 1));
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            if (e) std::rethrow_exception(e);
        }
        co_await until_queued(zk, dir + "/lock", 0);
        co_await other.close();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("a waiter whose node an operator deletes queues again, behind those who came meanwhile") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-waiter-deleted");
        const auto executor = co_await asio::this_coro::executor;
        const test_client holding(executor, options()), behind(executor, options());
        const mutex first(holding, dir + "/a"), second(zk, dir + "/a"), third(behind, dir + "/a");
        const shared_mutex writer(holding, dir + "/b"), reader(zk, dir + "/b"), late(behind, dir + "/b");
        for (const bool shared : {false, true}) {
            const std::string queue = dir + (shared ? "/b" : "/a");
            asio::awaitable<lock_guard> free = shared ? writer.acquire() : first.acquire();
            lock_guard holder = co_await std::move(free);
            taker deleted(executor, shared ? reader.acquire_shared() : second.acquire());
            co_await until_queued(zk, queue, 2);
            taker next(executor, shared ? late.acquire() : third.acquire());
            co_await until_queued(zk, queue, 3);
            asio::awaitable<std::vector<contender_info>> listing = shared ? reader.contenders() : second.contenders();
            const auto before = co_await std::move(listing);
            REQUIRE(before.size() == 3);
            co_await zk.remove(before[1].path);
            auto back = [&]() -> asio::awaitable<bool> {
                asio::awaitable<std::vector<contender_info>> asking =
                    shared ? reader.contenders() : second.contenders();
                const auto now = co_await std::move(asking);
                co_return now.size() == 3 && now[1].path == before[2].path && now[2].session_id == before[1].session_id;
            };
            co_await eventually(back);
            CHECK(holder.held());
            co_await holder.release();
            co_await next.got();
            CHECK_FALSE(deleted.ended());
            next.release();
            co_await deleted.got();
            CHECK(deleted.guard().held());
            deleted.release();
            co_await until_queued(zk, queue, 0);
        }
        co_await holding.close();
        co_await behind.close();
    };
    with_client(body);
}

TEST_CASE("with the wrong password a lock of any kind is refused by name, and with the right one it is had") {
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.add_auth("digest", "eve:secret");  // first: what an earlier run has left is hers, too
        const std::string dir = co_await fresh_directory(zk, "lock-password");
        create_options hers;
        hers.acl(creator_all_acl());
        for (const char* name : {"/mutex", "/shared", "/semaphore", "/unfair", "/multi"})
            co_await zk.create(dir + name, "", hers);
        const test_client guest(co_await asio::this_coro::executor, options());
        co_await guest.add_auth("digest", "eve:wrong");
        const mutex plain(guest, dir + "/mutex"), below(guest, dir + "/mutex/deeper/lock");
        const shared_mutex shared(guest, dir + "/shared");
        const semaphore sem(guest, dir + "/semaphore", permits::fixed(1));
        const unfair_mutex unfair(guest, dir + "/unfair/flag");
        multi_mutex both(guest);
        both.add(mutex(guest, dir + "/multi/a")).add(mutex(guest, dir + "/multi/b"));
        struct way {
            std::string path;
            std::function<asio::awaitable<lock_guard>()> acquire;
        };
        const std::vector<way> ways{{"/mutex", [&] { return plain.acquire(); }},
                                    {"/mutex", [&] { return below.acquire(); }},
                                    {"/shared", [&] { return shared.acquire(); }},
                                    {"/shared", [&] { return shared.acquire_shared(); }},
                                    {"/semaphore", [&] { return sem.acquire(); }},
                                    {"/unfair", [&] { return unfair.acquire(); }},
                                    {"/multi", [&] { return both.acquire(); }}};
        for (const way& w : ways) {
            INFO(w.path);
            const std::error_code code = co_await code_of(w.acquire());
            CHECK(code == zk_errc::no_auth);
            const std::string text = co_await message_of(w.acquire());
            CHECK(text.find(dir + w.path) != std::string::npos);
        }
        CHECK(guest.state() == session_state::connected);
        co_await guest.add_auth("digest", "eve:secret");
        for (const way& w : ways) {
            INFO(w.path);
            const lock_guard guard = co_await w.acquire();
            CHECK(guard.held());
        }
        co_await guest.close();
    };
    with_client(body);
}

TEST_CASE("what locks and guards return may be awaited when they are gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-outlived");
        std::vector<asio::awaitable<lock_guard>> acquiring;
        acquiring.push_back(mutex(zk, dir + "/mutex").acquire());
        acquiring.push_back(shared_mutex(zk, dir + "/shared").acquire_shared());
        acquiring.push_back(semaphore(zk, dir + "/semaphore", permits::fixed(1)).acquire());
        acquiring.push_back(unfair_mutex(zk, dir + "/unfair").acquire());
        acquiring.push_back(multi_mutex(zk).add(mutex(zk, dir + "/a")).add(mutex(zk, dir + "/b")).acquire());
        for (asio::awaitable<lock_guard>& later : acquiring) {
            std::optional<lock_guard> guard(co_await std::move(later));
            const std::string path = guard->path();
            asio::awaitable<loss_reason> lost = guard->lost();
            asio::awaitable<void> released = guard->release();
            CHECK_FALSE(guard->held());
            guard.reset();
            co_await std::move(released);
            const auto node = co_await zk.exists(path);
            CHECK_FALSE(node);
            const loss_reason why = co_await std::move(lost);
            CHECK(why == loss_reason::released);
        }
        auto permit = semaphore(zk, dir + "/semaphore", permits::fixed(1)).try_acquire();
        const auto had = co_await std::move(permit);
        CHECK(had);

        std::optional<lock_guard> guard(co_await mutex(zk, dir + "/mutex").acquire());
        transaction mark;
        mark.create(dir + "/mark");
        auto committing = guard->commit(mark);
        const lock_guard moved = std::move(*guard);
        guard.reset();
        co_await std::move(committing);
        const auto made = co_await zk.exists(dir + "/mark");
        CHECK(made);
    };
    with_client(body);
}

TEST_CASE("the loop may be destroyed while locks are held, handed over and waited for", "[real-loop][leaves]") {
    for (const int turns : {0, 1, 3, 10, 30, 100}) {
        auto io = std::make_unique<asio::io_context>();
        auto zk = std::make_unique<client>(io->get_executor(), options());
        const std::string dir = "/test-lock-loop-destroyed";
        std::vector<std::function<asio::awaitable<lock_guard>()>> kinds;
        kinds.push_back([m = mutex(*zk, dir + "/mutex")] { return m.acquire(); });
        kinds.push_back([m = shared_mutex(*zk, dir + "/shared")] { return m.acquire_shared(); });
        kinds.push_back([m = shared_mutex(*zk, dir + "/shared")] { return m.acquire(); });
        kinds.push_back([s = semaphore(*zk, dir + "/semaphore", permits::fixed(1))] { return s.acquire(); });
        kinds.push_back([u = unfair_mutex(*zk, dir + "/unfair")] { return u.acquire(); });
        kinds.push_back(
            [m = multi_mutex(*zk).add(mutex(*zk, dir + "/a")).add(mutex(*zk, dir + "/b"))] { return m.acquire(); });
        auto work = [](std::function<asio::awaitable<lock_guard>()> acquire, bool for_ever) -> asio::awaitable<void> {
            for (;;) {
                const lock_guard guard = co_await acquire();
                if (for_ever) co_await guard.lost();
            }
        };
        for (const auto& acquire : kinds)
            for (const bool for_ever : {false, false, true, false})
                asio::co_spawn(*io, work(acquire, for_ever), [](std::exception_ptr) {});
        for (int i = 0; i < turns; ++i) io->run_one_for(100ms);
        kinds.clear();
        zk.reset();  // a handle must not outlive the context
        io.reset();
    }
}
