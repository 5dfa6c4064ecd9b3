#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("acquire, release and acquire again with one object") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-basics");
        const session s = co_await zk.current_session();
        const mutex lock(zk, dir + "/deeper/lock");
        lock_guard guard = co_await lock.acquire();
        CHECK(guard.held());
        CHECK(guard.reason() == loss_reason::none);
        CHECK(guard.held_until() > boot_clock::now());
        const auto node = co_await zk.exists(guard.path());
        REQUIRE(node);
        CHECK(node->ephemeral_owner == s.id());
        CHECK(guard.token().value() == node->czxid);
        const std::string name(node_name(guard.path()));
        CHECK(name.starts_with("_c_"));
        CHECK(name.find("-lock-") != std::string::npos);

        co_await guard.release();
        CHECK_FALSE(guard.held());
        co_await guard.release();  // again: nothing
        const std::size_t left = co_await count_children(zk, lock.path());
        CHECK(left == 0);

        lock_guard next = co_await lock.acquire();
        CHECK(next.token() > guard.token());
        {
            const lock_guard moved = std::move(next);
            CHECK(moved.held());
            CHECK_FALSE(next.held());
        }
        co_await until_queued(zk, lock.path(), 0);  // released by its destructor
    };
    with_client(body);
}

TEST_CASE("an uncontended acquire takes one round trip") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-flight");
        const mutex lock(zk, dir);
        {
            lock_guard warm_up = co_await lock.acquire();
            co_await warm_up.release();
        }
        const session s = co_await zk.current_session();
        const auto received = [&] { return requests_of(s); };
        const long before = received();
        REQUIRE(before > 0);
        lock_guard guard = co_await lock.acquire();
        CHECK(received() - before == 2);  // create and children; they leave together
        co_await guard.release();
        CHECK(received() - before == 3);
    };
    with_client(options().session_timeout(paced(10s)), body);  // an idle session reads, after an eighth of that
}

TEST_CASE("ten tasks on one lock get it strictly in sequence, one at a time", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-ten");
        const mutex lock(zk, dir);
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const mutex same(other, dir);
        int inside = 0;
        std::vector<std::int32_t> order;
        std::vector<fencing_token> tokens;
        auto task = [&](const mutex& m) -> asio::awaitable<void> {
            lock_guard guard = co_await m.acquire();
            CHECK(++inside == 1);
            order.push_back(std::stoi(guard.path().substr(guard.path().size() - 10)));
            tokens.push_back(guard.token());
            asio::steady_timer work(co_await asio::this_coro::executor, 2ms);
            co_await work.async_wait(asio::use_awaitable);
            CHECK(guard.held());
            --inside;
            co_await guard.release();
        };
        std::vector<running> tasks;
        for (int i = 0; i < 10; ++i) tasks.emplace_back(executor, task(i % 2 ? lock : same));
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            CHECK_FALSE(e);
        }
        CHECK(order.size() == 10);
        CHECK(std::is_sorted(order.begin(), order.end()));
        CHECK(std::is_sorted(tokens.begin(), tokens.end()));
        const std::size_t left = co_await count_children(zk, dir);
        CHECK(left == 0);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("try_acquire and time limits leave nothing behind") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-try");
        const test_client other(co_await asio::this_coro::executor, options());
        const mutex lock(zk, dir), theirs(other, dir);
        {
            const auto free = co_await lock.try_acquire();
            REQUIRE(free);
            CHECK(free->held());
            for (const mutex& m : {lock, theirs}) {
                auto second = co_await m.try_acquire();
                CHECK_FALSE(second);
                co_await until_queued(zk, dir, 1);
                second = co_await m.try_acquire_for(30ms);
                CHECK_FALSE(second);
                second = co_await m.try_acquire_for(1ns);
                CHECK_FALSE(second);
                second = co_await m.try_acquire_for(0ms);
                CHECK_FALSE(second);
                second = co_await m.try_acquire_until(boot_clock::now() - 1s);
                CHECK_FALSE(second);
                co_await until_queued(zk, dir, 1);
            }
            co_await until_quiet(other, dir);
            co_await until_quiet(zk, dir);
            CHECK(free->held());
        }
        const auto in_time = co_await lock.try_acquire_for(10s);
        CHECK(in_time);
        auto negative = [&]() -> asio::awaitable<void> { co_await lock.try_acquire_for(-1s); };
        const std::string text = co_await message_of(negative());
        CHECK(text == "try_acquire_for " + dir + ": invalid argument (a time limit is not negative)");
        co_await other.close();
    };
    with_client(options().session_timeout(paced(10s)), body);  // after a quarter of that a holder watches its node
}

TEST_CASE("without any server a time limit includes connecting") {
    test_loop loop;
    // Nobody waits that long for a connection: it is the time limit that ends it.
    const test_client zk(loop.executor(), options("127.0.0.1:" + std::to_string(free_port())).connection_timeout(1h));
    auto body = [&]() -> asio::awaitable<void> {
        const mutex lock(zk, "/test-nowhere");
        const std::error_code c = co_await code_of(lock.try_acquire_for(50ms));
        CHECK(c == errc::not_connected);
        co_await zk.close();
    };
    loop.run(body());
}

TEST_CASE("contenders: the holder first, with data and session") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-contenders");
        const auto executor = co_await asio::this_coro::executor;
        const session s = co_await zk.current_session();
        mutex_options first, second;
        first.data("first");
        second.data("second");
        const mutex a(zk, dir, first), b(zk, dir, second);
        const auto none = co_await a.contenders();
        CHECK(none.empty());
        lock_guard guard = co_await a.acquire();
        auto wait = [&]() -> asio::awaitable<void> { (void)co_await b.acquire(); };
        running waiting(executor, wait());
        co_await until_queued(zk, dir, 2);
        const std::vector<contender_info> all = co_await a.contenders();
        REQUIRE(all.size() == 2);
        CHECK(all[0].path == guard.path());
        CHECK(all[0].data == "first");
        CHECK(all[0].position == 0);
        CHECK(all[0].session_id == s.id());
        CHECK(all[1].data == "second");
        CHECK(all[1].position == 1);
        co_await guard.release();
        co_await waiting.end();
        const mutex missing(zk, dir + "/none");
        const auto nobody = co_await missing.contenders();
        CHECK(nobody.empty());
    };
    with_client(body);
}

TEST_CASE("a waiter in the middle that is cancelled leaves - the order of the rest is unchanged") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-cancel");
        const mutex lock(zk, dir);
        const auto executor = co_await asio::this_coro::executor;
        std::vector<int> order;
        auto task = [&](int me) -> asio::awaitable<void> {
            const lock_guard guard = co_await lock.acquire();
            order.push_back(me);
        };
        std::optional<lock_guard> holder(co_await lock.acquire());
        std::vector<running> tasks;
        for (int i = 0; i < 6; ++i) {
            tasks.emplace_back(executor, task(i));
            co_await until_queued(zk, dir, static_cast<std::size_t>(i) + 2);
        }
        for (const int i : {0, 3, 5}) tasks[static_cast<std::size_t>(i)].cancel();
        for (const int i : {0, 3, 5}) {
            const std::error_code c = co_await tasks[static_cast<std::size_t>(i)].code();
            CHECK(c == condition::cancelled);
        }
        co_await until_queued(zk, dir, 4);
        holder.reset();
        for (const running& t : tasks) co_await t.end();
        CHECK(order == std::vector<int>{1, 2, 4});
        co_await until_queued(zk, dir, 0);
        CHECK(zk.inside().watches() == 0);
    };
    with_client(body);
}

TEST_CASE("an acquire that is cancelled at any moment leaves no node and no watch") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-cancel-anywhere");
        const mutex lock(zk, dir);
        const auto executor = co_await asio::this_coro::executor;
        for (const bool contended : {false, true}) {
            std::optional<lock_guard> holder;
            if (contended) holder.emplace(co_await lock.acquire());
            for (int turns = 0; turns < 60; ++turns) {
                auto attempt = [&]() -> asio::awaitable<void> { const lock_guard g = co_await lock.acquire(); };
                running r(executor, attempt());
                asio::steady_timer turn(executor);
                for (int i = 0; i < turns && !r.ended(); ++i) {
                    turn.expires_after(std::chrono::microseconds(20));
                    co_await turn.async_wait(asio::use_awaitable);
                }
                r.cancel();
                const std::error_code c = co_await r.code();
                CHECK((!c || c == condition::cancelled));
            }
            co_await until_queued(zk, dir, contended ? 1 : 0);
        }
        co_await until_queued(zk, dir, 0);
        auto nothing = [&]() -> asio::awaitable<bool> {
            co_return zk.inside().watches() == 0 && zk.inside().pending_operations() == 0;
        };
        co_await eventually(nothing);
    };
    with_client(body);
}

TEST_CASE("a directory with foreign children is refused, and named") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-foreign");
        co_await zk.create(dir + "/somebody-else");
        const mutex lock(zk, dir);
        auto attempt = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        const std::string text = co_await message_of(attempt());
        CHECK(text == "acquire " + dir +
                          ": directory has children that are no contenders (child \"somebody-else\" is not named "
                          "...lock-<sequence>: use a directory of its own, and one name_scheme for all, or see "
                          "name_scheme::allow_foreign_children())");
        co_await until_queued(zk, dir, 1);
        const std::error_code c = co_await code_of(lock.contenders());
        CHECK(c == errc::foreign_child);
        CHECK_THROWS_AS(mutex(zk, "/"), error);
        CHECK_THROWS_AS(mutex(zk, "relative"), error);
    };
    with_client(body);
}

TEST_CASE("locks with an ACL of their own, and without the permission") {
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.add_auth("digest", "ann:secret");  // first: what an earlier run has left is ann's, too
        const std::string dir = co_await fresh_directory(zk, "mutex-acl");
        mutex_options mine;
        mine.acl(creator_all_acl());
        const mutex lock(zk, dir + "/a/lock", mine);
        lock_guard guard = co_await lock.acquire();
        const operations::acl_and_stat parent = co_await zk.get_acl(dir + "/a");
        CHECK(parent.acl[0].who().scheme() == "digest");

        const test_client stranger(co_await asio::this_coro::executor, options());
        const mutex same(stranger, dir + "/a/lock");
        auto attempt = [&]() -> asio::awaitable<void> { (void)co_await same.acquire(); };
        const std::error_code c = co_await code_of(attempt());
        CHECK(c == zk_errc::no_auth);
        CHECK(stranger.state() == session_state::connected);
        CHECK(guard.held());
        co_await stranger.close();
    };
    with_client(body);
}

TEST_CASE("mutex: an ACL refuses the removal of a node, of one that is handed over, too, and allows it later",
          "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-refused-removal");
        const mutex lock(zk, dir);
        const test_client other(co_await asio::this_coro::executor, options());
        const mutex same(other, dir);
        lock_guard first = co_await lock.acquire();
        std::optional<lock_guard> second, third;
        auto take_second = [&]() -> asio::awaitable<void> { second.emplace(co_await lock.acquire()); };
        auto take_third = [&]() -> asio::awaitable<void> { third.emplace(co_await same.acquire()); };
        const running next(co_await asio::this_coro::executor, take_second());
        co_await until_queued(zk, dir, 2);
        const running last(co_await asio::this_coro::executor, take_third());
        co_await until_queued(zk, dir, 3);
        const permission rest = permission::read | permission::write | permission::create | permission::admin;
        co_await other.set_acl(dir, acl_of(acl_entry(rest, anyone())));
        const std::error_code refused = co_await code_of(first.release());
        CHECK(refused == zk_errc::no_auth);
        co_await next.end();
        REQUIRE(second);
        CHECK(second->held());
        const std::error_code refused_again = co_await code_of(second->release());
        CHECK(refused_again == zk_errc::no_auth);
        co_await zk.idle();
        CHECK_FALSE(third);
        co_await other.set_acl(dir, open_acl());
        co_await last.end();
        REQUIRE(third);
        CHECK(third->held());
        co_await until_queued(zk, dir, 1);
        co_await third->release();
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("with_lock passes on what the body throws, and releases") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-throw");
        const mutex lock(zk, dir);
        auto throwing = [](lock_guard&) -> asio::awaitable<void> {
            throw std::runtime_error("mine");
            co_return;
        };
        const std::string text = co_await message_of(lock.with_lock(throwing));
        CHECK(text == "mine");
        auto releasing = [](lock_guard& guard) -> asio::awaitable<void> { co_await guard.release(); };
        co_await lock.with_lock(releasing);
        co_await until_queued(zk, dir, 0);

        // Cancelled from outside: the body is, too, and the lock is free afterwards.
        bool begun = false, cancelled = false;
        auto endless = [&](lock_guard&) -> asio::awaitable<void> {
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            begun = true;
            try {
                co_await never.async_wait(asio::use_awaitable);
            } catch (const std::system_error& e) {
                cancelled = e.code() == condition::cancelled;
                throw;
            }
        };
        running holding(co_await asio::this_coro::executor, lock.with_lock(endless));
        const auto has_begun = [&]() -> asio::awaitable<bool> { co_return begun; };
        co_await eventually(has_begun);
        holding.cancel();
        const std::error_code c = co_await holding.code();
        CHECK(c == condition::cancelled);
        CHECK(cancelled);
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}
