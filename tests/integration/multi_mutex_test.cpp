#include "integration/multi_locks.hpp"

#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("multi_mutex: mutexes in the order of their paths, each with its token") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-mutexes");
        const multi_mutex all = three(zk, dir);
        CHECK(all.path() == dir + "/a," + dir + "/b," + dir + "/c");
        lock_guard guard = co_await all.acquire();
        CHECK(guard.held());
        REQUIRE(guard.paths().size() == 3);
        std::vector<fencing_token> created;
        for (const std::string& path : guard.paths()) {
            const auto node = co_await zk.exists(path);
            REQUIRE(node);
            created.emplace_back(node->czxid);
        }
        CHECK(guard.paths()[0].starts_with(dir + "/a/"));
        CHECK(guard.paths()[2].starts_with(dir + "/c/"));
        CHECK(std::is_sorted(created.begin(), created.end()));
        CHECK(guard.tokens() == created);
        CHECK(guard.token() == created.back());
        co_await guard.release();
        CHECK_FALSE(guard.held());
        CHECK(guard.tokens() == created);
        for (const char* name : {"/a", "/b", "/c"}) {
            const std::vector<std::string> left = co_await children_of(zk, dir + name);
            CHECK(left.empty());
        }
        lock_guard again = co_await all.acquire();
        CHECK(again.tokens().front() > created.front());
        CHECK(lock_guard().tokens().empty());
    };
    with_client(body);
}

TEST_CASE("multi_mutex: locks of all kinds", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-kinds");
        const mutex a(zk, dir + "/a");
        const shared_mutex b(zk, dir + "/b"), c(zk, dir + "/c");
        const semaphore d(zk, dir + "/d", permits::fixed(3));
        multi_mutex all(zk);
        all.add(d, 2).add_shared(c).add(b).add(a);
        lock_guard guard = co_await all.acquire();
        REQUIRE(guard.paths().size() == 5);
        std::int64_t largest = 0;
        for (const std::string& path : guard.paths()) {
            const auto node = co_await zk.exists(path);
            REQUIRE(node);
            largest = std::max(largest, node->czxid);
        }
        CHECK(guard.token().value() == largest);
        CHECK(guard.tokens().size() == 5);
        CHECK(guard.tokens()[3] == guard.tokens()[4]);  // of the permits
        auto reader = co_await c.try_acquire_shared();
        CHECK(reader);  // readers share
        auto writer = co_await c.try_acquire();
        CHECK_FALSE(writer);
        reader.reset();
        reader = co_await b.try_acquire_shared();
        CHECK_FALSE(reader);
        auto one = co_await d.try_acquire();
        CHECK(one);
        auto two = co_await d.try_acquire();
        CHECK_FALSE(two);
        transaction t;
        t.create(dir + "/done");
        const std::vector<step_result> done = co_await guard.commit(t);
        CHECK(done.size() == 1);
        co_await guard.release();
        writer = co_await c.try_acquire();
        CHECK(writer);
    };
    with_client(body);
}

TEST_CASE("multi_mutex: an unfair member takes part, but nothing can be committed") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-unfair");
        multi_mutex all(zk);
        all.add(mutex(zk, dir + "/a")).add(unfair_mutex(zk, dir + "/flag"));
        lock_guard guard = co_await all.acquire();
        transaction t;
        t.create(dir + "/done");
        const std::error_code c = co_await code_of(guard.commit(t));
        CHECK(c == errc::invalid_argument);
        co_await guard.release();
        const auto flag = co_await zk.exists(dir + "/flag");
        CHECK_FALSE(flag);
    };
    with_client(body);
}

TEST_CASE("multi_mutex: those who add the same locks in opposite order do not wait for each other") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-order");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        int inside = 0, served = 0;
        auto task = [&](client c, bool forward) -> asio::awaitable<void> {
            multi_mutex both(c);
            const mutex a(c, dir + "/a"), b(c, dir + "/b");
            if (forward)
                both.add(a).add(b);
            else
                both.add(b).add(a);
            for (int round = 0; round < 10; ++round) {
                lock_guard guard = co_await both.acquire();
                CHECK(++inside == 1);
                co_await turns(1);
                CHECK(guard.held());
                --inside;
                ++served;
                co_await guard.release();
            }
        };
        std::vector<running> tasks;
        for (int i = 0; i < 8; ++i)
            tasks.emplace_back(executor, task(i < 4 ? client(zk) : client(other), i % 2 == 0));
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            CHECK_FALSE(e);
        }
        CHECK(served == 80);
        co_await until_free(zk, dir);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: it holds nothing behind the lock it waits for") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-waits");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const mutex theirs(other, dir + "/b"), behind(other, dir + "/c");
        lock_guard held = co_await theirs.acquire();
        taker all(executor, three(zk, dir).acquire());
        co_await until_queued(zk, dir + "/b", 2);
        co_await until_queued(zk, dir + "/a", 1);
        const std::vector<std::string> c = co_await children_of(zk, dir + "/c");
        CHECK(c.empty());
        lock_guard next = co_await behind.acquire();  // whoever holds b may have c
        co_await next.release();
        CHECK_FALSE(all.has_it());
        co_await held.release();
        co_await all.got();
        CHECK(all.guard().paths().size() == 3);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE(
    "multi_mutex: one that cannot be had because of a foreign child - the others are released, no more are tried") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-foreign");
        co_await zk.create(dir + "/b");
        co_await zk.create(dir + "/b/somebody-else");
        const multi_mutex all = three(zk, dir);
        auto attempt = [&]() -> asio::awaitable<void> { (void)co_await all.acquire(); };
        const std::string text = co_await message_of(attempt());
        CHECK(text.starts_with("acquire " + dir + "/b: "));
        CHECK(text.find("somebody-else") != std::string::npos);
        co_await until_queued(zk, dir + "/a", 0);
        co_await until_queued(zk, dir + "/b", 1);
        co_await until_queued(zk, dir + "/c", 0);
        const auto c = co_await zk.exists(dir + "/c");
        CHECK_FALSE(c);  // not even touched
    };
    with_client(body);
}

TEST_CASE("multi_mutex: one that is forbidden - the others are released, no more are tried") {
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.add_auth("digest", "ann:secret");
        const std::string dir = co_await fresh_directory(zk, "multi-forbidden");
        create_options hers;
        hers.acl(creator_all_acl());
        co_await zk.create(dir + "/b", "", hers);
        const test_client stranger(co_await asio::this_coro::executor, options());
        const multi_mutex all = three(stranger, dir);
        auto attempt = [&]() -> asio::awaitable<void> { (void)co_await all.acquire(); };
        const std::error_code c = co_await code_of(attempt());
        CHECK(c == zk_errc::no_auth);
        const std::string text = co_await message_of(attempt());
        CHECK(text.find(dir + "/b") != std::string::npos);
        co_await until_free(zk, dir);
        const auto last = co_await zk.exists(dir + "/c");
        CHECK_FALSE(last);
        CHECK(stranger.state() == session_state::connected);
        co_await stranger.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: no locks, the same lock twice and locks of another client are refused") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-bad");
        const multi_mutex none(zk);
        auto attempt = [&]() -> asio::awaitable<void> { (void)co_await none.acquire(); };
        const std::string text = co_await message_of(attempt());
        CHECK(text == "acquire: invalid argument (there are no locks in it)");
        auto trying = [&]() -> asio::awaitable<void> { co_await none.try_acquire(); };
        const std::error_code tried = co_await code_of(trying());
        CHECK(tried == errc::invalid_argument);

        multi_mutex twice(zk);
        twice.add(mutex(zk, dir + "/a"));
        CHECK_THROWS_AS(twice.add(mutex(zk, dir + "/a")), error);
        CHECK_THROWS_AS(twice.add_shared(shared_mutex(zk, dir + "/a")), error);
        CHECK_THROWS_AS(twice.add(std::shared_ptr<const lockable>()), error);
        CHECK_THROWS_AS(twice.add(mutex(zk, dir + "/b"), acquire_options().survive_expiry()), error);

        // One that is added brings its locks, in the order of all.
        multi_mutex inner(zk), outer(zk);
        inner.add(mutex(zk, dir + "/c")).add(mutex(zk, dir + "/a"));
        outer.add(mutex(zk, dir + "/b")).add(inner);
        CHECK(outer.path() == dir + "/a," + dir + "/b," + dir + "/c");
        CHECK_THROWS_AS(outer.add(mutex(zk, dir + "/a")), error);
        CHECK(twice.path() == dir + "/a");

        const test_client other(co_await asio::this_coro::executor, options());
        multi_mutex mixed(zk), strange = mixed, one = mixed;
        mixed.add(mutex(zk, dir + "/a")).add(mutex(other, dir + "/b"));
        strange.add(mutex(other, dir + "/a")).add(mutex(other, dir + "/b"));
        one.add(mutex(other, dir + "/a"));
        for (const multi_mutex& m : {mixed, strange, one}) {
            auto acquiring = [&]() -> asio::awaitable<void> { (void)co_await m.acquire(); };
            const std::error_code c = co_await code_of(acquiring());
            CHECK(c == errc::invalid_argument);
            co_await until_free(zk, dir);
        }
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("multi_mutex: with_lock releases all, and tells of the loss of one") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "multi-with");
        const multi_mutex all = three(zk, dir);
        std::size_t nodes = 0;
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            nodes = guard.paths().size();
            co_return;
        };
        co_await all.with_lock(work);
        CHECK(nodes == 3);
        co_await until_free(zk, dir);
        auto endless = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await zk.remove(guard.paths()[2]);
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        };
        const std::error_code c = co_await code_of(all.with_lock(endless));
        CHECK(c == errc::lock_lost);
        co_await until_free(zk, dir);
    };
    with_client(body);
}
