#include "support/lock_checks.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <algorithm>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> until_gone(client zk, std::string path) {
    auto gone = [&]() -> asio::awaitable<bool> {
        const auto node = co_await zk.exists(path);
        co_return !node;
    };
    co_await eventually(gone);
}

// Of all sessions.
asio::awaitable<void> until_watched(std::string path, bool watched) {
    auto reached = [&]() -> asio::awaitable<bool> { co_return !watched_below(path).empty() == watched; };
    co_await eventually(reached);
}

}  // namespace

TEST_CASE("unfair_mutex: one at a time, of many coroutines and clients", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-many");
        const auto executor = co_await asio::this_coro::executor;
        std::vector<test_client> clients;
        for (int i = 0; i < 3; ++i) clients.emplace_back(executor, options());
        unfair_mutex_options quick;
        quick.back_off(1ms, 8ms);
        int inside = 0, served = 0;
        auto task = [&](client c) -> asio::awaitable<void> {
            const unfair_mutex lock(c, dir + "/lock", quick);
            for (int round = 0; round < 3; ++round) {
                lock_guard guard = co_await lock.acquire();
                CHECK(++inside == 1);
                CHECK(guard.held());
                const auto node = co_await zk.exists(guard.path());
                CHECK((node && node->czxid == guard.token().value()));
                --inside;
                ++served;
                co_await guard.release();
            }
        };
        std::vector<running> tasks;
        for (std::size_t i = 0; i < 18; ++i) tasks.emplace_back(executor, task(clients[i % 3]));
        for (const running& t : tasks) {
            const std::exception_ptr e = co_await t.end();
            CHECK_FALSE(e);
        }
        CHECK(served == 18 * 3);
        co_await until_gone(zk, dir + "/lock");
        for (const test_client& c : clients) co_await c.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: try_acquire and time limits leave nothing behind") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-try");
        const test_client other(co_await asio::this_coro::executor, options());
        const unfair_mutex lock(zk, dir + "/lock"), theirs(other, dir + "/lock");
        {
            const auto free = co_await lock.try_acquire();
            REQUIRE(free);
            for (const unfair_mutex& m : {lock, theirs}) {
                auto second = co_await m.try_acquire();
                CHECK_FALSE(second);
                second = co_await m.try_acquire_for(30ms);
                CHECK_FALSE(second);
                second = co_await m.try_acquire_for(0ms);
                CHECK_FALSE(second);
                second = co_await m.try_acquire_until(boot_clock::now() - 1s);
                CHECK_FALSE(second);
            }
            CHECK(free->held());
        }
        auto in_time = co_await theirs.try_acquire_for(10s);
        REQUIRE(in_time);
        co_await in_time->release();
        co_await until_quiet(other, dir);
        co_await until_quiet(zk, dir);
        auto negative = [&]() -> asio::awaitable<void> { co_await lock.try_acquire_for(-1s); };
        const std::error_code c = co_await code_of(negative());
        CHECK(c == errc::invalid_argument);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: try_acquire gets it when its own client has just let it go") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-let-go");
        const unfair_mutex lock(zk, dir + "/lock");
        std::int64_t token = 0;
        for (int i = 0; i < 10; ++i) {
            const auto guard = co_await lock.try_acquire();  // the one before is still being released
            REQUIRE(guard);
            CHECK(guard->token().value() > token);
            token = guard->token().value();
        }
        co_await until_gone(zk, lock.path());
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: holder() tells who has it, and parents are created on demand") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-holder");
        const session s = co_await zk.current_session();
        unfair_mutex_options mine;
        mine.data("host-a");
        const unfair_mutex lock(zk, dir + "/deeper/still/lock", mine);
        auto who = co_await lock.holder();
        CHECK_FALSE(who);
        lock_guard guard = co_await lock.acquire();
        who = co_await lock.holder();
        REQUIRE(who);
        CHECK(who->path == lock.path());
        CHECK(who->data == "host-a");
        CHECK(who->session_id == s.id());
        CHECK(who->position == 0);
        CHECK(who->kind == lock_kind::exclusive);
        CHECK(who->age() < 60s);
        CHECK(who->age() > -60s);
        co_await guard.release();
        who = co_await lock.holder();
        CHECK_FALSE(who);
        // The parents were containers.
        co_await until_gone(zk, dir + "/deeper");
        lock_guard again = co_await lock.acquire();
        CHECK(again.token() > guard.token());
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: a node that an operator deletes is lost") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-deleted");
        const unfair_mutex lock(zk, dir + "/lock");
        lock_guard guard = co_await lock.acquire();
        co_await zk.remove(guard.path());
        const loss_reason why = co_await guard.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK_FALSE(guard.held());
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: whoever has lost the node does not remove somebody else's") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-not-ours");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const unfair_mutex lock(zk, dir + "/lock"), theirs(other, dir + "/lock");
        lock_guard lost = co_await lock.acquire();
        taker next(executor, theirs.acquire());
        co_await until_watched(dir + "/lock", true);
        co_await zk.remove(lost.path());
        co_await next.got();
        const loss_reason why = co_await lost.lost();  // although a node of that name exists
        CHECK(why == loss_reason::node_deleted);
        co_await lost.release();
        const auto node = co_await zk.exists(lock.path());
        REQUIRE(node);
        CHECK(node->czxid == next.guard().token().value());
        CHECK(next.guard().held());
        next.release();
        co_await until_gone(zk, lock.path());
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: the release of a holder who has not yet noticed the loss does not remove somebody else's") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-not-noticed");
        const test_client other(co_await asio::this_coro::executor, options());
        const unfair_mutex lock(zk, dir + "/lock"), theirs(other, dir + "/lock");
        for (int i = 0; i < 10; ++i) {
            lock_guard lost = co_await lock.acquire();
            co_await other.remove(lost.path());
            lock_guard next = co_await theirs.acquire();
            co_await lost.release();
            const auto node = co_await other.exists(lock.path());
            CHECK((node && node->czxid == next.token().value()));
            co_await next.release();
        }
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: when the holder's session expires the next one gets it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const unfair_mutex theirs(victim, dir + "/lock"), ours(zk, dir + "/lock");
        lock_guard lost = co_await theirs.acquire();
        taker behind(executor, theirs.acquire()), waiting(executor, ours.acquire());
        co_await until_watched(dir + "/lock", true);
        co_await expire_session(victim);
        const loss_reason why = co_await lost.lost();
        CHECK(why == loss_reason::session_expired);
        CHECK_FALSE(lost.held());
        co_await waiting.got();
        CHECK(waiting.guard().token() > lost.token());
        const std::error_code c = co_await behind.code();
        CHECK(c == errc::session_expired);
        co_await lost.release();
        const auto node = co_await zk.exists(ours.path());
        CHECK(node);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: when the session of waiters expires all of them fail") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-expiry-waiting");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const unfair_mutex theirs(victim, dir + "/lock"), ours(zk, dir + "/lock");
        const lock_guard guard = co_await ours.acquire();
        std::vector<taker> waiting;
        for (int i = 0; i < 3; ++i) waiting.emplace_back(executor, theirs.acquire());
        co_await until_watched(dir + "/lock", true);
        co_await expire_session(victim);
        for (const taker& t : waiting) {
            const std::error_code c = co_await t.code();
            CHECK(c == errc::session_expired);
        }
        CHECK(guard.held());
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: an acquire that is cancelled at any moment leaves no node and no watch") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-cancel");
        const unfair_mutex lock(zk, dir + "/lock");
        auto attempt = [&]() -> asio::awaitable<void> { const lock_guard g = co_await lock.acquire(); };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 2);
        co_await until_gone(zk, lock.path());
        const test_client other(co_await asio::this_coro::executor, options());
        const unfair_mutex theirs(other, dir + "/lock");
        for (const unfair_mutex& m : {lock, theirs}) {  // behind one's own, and behind somebody else
            lock_guard holder = co_await m.acquire();
            const int waiting = co_await cancel_everywhere(attempt, 60);
            CHECK(waiting == 60);
            CHECK(holder.held());
            const auto node = co_await zk.exists(lock.path());
            CHECK((node && node->czxid == holder.token().value()));
            co_await holder.release();
        }
        lock_guard still = co_await lock.acquire();
        co_await still.release();
        co_await until_gone(zk, lock.path());
        co_await until_quiet(zk, dir);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: with missing parents, too, a cancelled acquire leaves no node") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-cancel-parents");
        int i = 0;
        auto attempt = [&]() -> asio::awaitable<void> {
            const unfair_mutex lock(zk, dir + "/" + std::to_string(++i) + "/a/lock");
            const lock_guard g = co_await lock.acquire();
        };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 2);
        for (; i > 0; --i) co_await until_gone(zk, dir + "/" + std::to_string(i) + "/a/lock");
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: a body may give its guard back, and acquire again") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-body-releases");
        const unfair_mutex lock(zk, dir + "/lock");
        auto releasing = [](lock_guard& guard) -> asio::awaitable<void> { co_await guard.release(); };
        co_await lock.with_lock(releasing);
        int again = 0;
        auto twice = [&](lock_guard& guard) -> asio::awaitable<void> {
            { const lock_guard given_back = std::move(guard); }
            const lock_guard second = co_await lock.acquire();  // while the release is under way
            CHECK(second.held());
            ++again;
        };
        co_await lock.with_lock(twice);
        CHECK(again == 1);

        multi_mutex both(zk);
        both.add(mutex(zk, dir + "/a")).add(unfair_mutex(zk, dir + "/flag"));
        co_await both.with_lock(releasing);
        co_await both.with_lock(releasing);
        co_await until_gone(zk, lock.path());
        co_await until_gone(zk, dir + "/flag");
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: commit is refused with a clear error") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-commit");
        const unfair_mutex lock(zk, dir + "/lock");
        const lock_guard guard = co_await lock.acquire();
        auto attempt = [&]() -> asio::awaitable<void> {
            transaction t;
            t.create(dir + "/done");
            co_await guard.commit(t);
        };
        const std::string text = co_await message_of(attempt());
        CHECK(text == "commit " + dir +
                          "/lock: invalid argument (the node of this kind of lock may be another client's: use mutex)");
        const auto done = co_await zk.exists(dir + "/done");
        CHECK_FALSE(done);
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: only one coroutine of a client watches and tries") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "unfair-one-tries");
        const auto executor = co_await asio::this_coro::executor;
        const test_client crowd(executor, options());
        const session s = co_await crowd.current_session();
        const unfair_mutex ours(zk, dir + "/lock"), theirs(crowd, dir + "/lock");
        lock_guard guard = co_await ours.acquire();
        const long before = requests_of(s);
        std::vector<taker> waiting;
        for (int i = 0; i < 30; ++i) waiting.emplace_back(executor, theirs.acquire());
        co_await until_watched(dir + "/lock", true);
        co_await turns(50);
        CHECK(crowd.inside().watches() == 1);
        CHECK(requests_of(s) - before < 10);  // a create, a watch, a ping; not 30 of each
        co_await guard.release();
        auto one_has_it = [&]() -> asio::awaitable<bool> {
            co_return std::count_if(waiting.begin(), waiting.end(), [](const taker& t) { return t.has_it(); }) == 1;
        };
        co_await eventually(one_has_it);
        CHECK(requests_of(s) - before < 20);
        // Among themselves they hand it over, without a watch.
        for (std::size_t i = 0; i < waiting.size(); ++i) {
            co_await waiting[i].got();
            CHECK(std::count_if(waiting.begin(), waiting.end(), [](const taker& t) { return t.has_it(); }) == 1);
            waiting[i].release();
        }
        CHECK(requests_of(s) - before < 30 * 4 + 20);
        co_await crowd.close();
    };
    with_client(body);
}

TEST_CASE("unfair_mutex: bad arguments are refused") {
    auto body = [](client zk) -> asio::awaitable<void> {
        CHECK_THROWS_AS(unfair_mutex(zk, "/"), error);
        CHECK_THROWS_AS(unfair_mutex(zk, "relative"), error);
        unfair_mutex_options o;
        CHECK_THROWS_AS(o.back_off(-1ms, 5ms), error);
        CHECK_THROWS_AS(o.back_off(6ms, 5ms), error);
        co_return;
    };
    with_client(body);
}
