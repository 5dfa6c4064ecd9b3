#include "support/lock_checks.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <algorithm>
#include <memory>

using namespace zkasio;
using namespace zkasio::test;

namespace {

acquire_options as(const lock_owner& who) {
    acquire_options how;
    how.owner(who);
    return how;
}

}  // namespace

TEST_CASE("lock_owner: an owner has at once what it has already, and the node stays until its last guard goes") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-counts");
        const mutex lock(zk, dir), same(zk, dir);
        const std::vector<std::vector<std::size_t>> orders{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
        for (const std::vector<std::size_t>& order : orders) {
            const lock_owner me;
            std::vector<lock_guard> guards;
            guards.push_back(co_await lock.acquire(as(me)));
            guards.push_back(co_await same.acquire(as(me)));
            auto third = co_await lock.try_acquire(as(lock_owner(me)));  // copies are the same owner
            REQUIRE(third);
            guards.push_back(std::move(*third));
            CHECK(guards[0].path() == guards[2].path());
            CHECK(guards[0].token() == guards[1].token());
            for (std::size_t i = 0; i < 3; ++i) {
                const std::vector<std::string> now = co_await children_of(zk, dir);
                CHECK(now.size() == 1);
                for (std::size_t j = 0; j < 3; ++j) {
                    const bool released = std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i), j) !=
                                          order.begin() + static_cast<std::ptrdiff_t>(i);
                    CHECK(guards[j].held() == !released);
                }
                co_await guards[order[i]].release();
            }
            const std::vector<std::string> left = co_await children_of(zk, dir);
            CHECK(left.empty());
        }
    };
    with_client(body);
}

TEST_CASE("lock_owner: a guard that is released keeps nothing from the others - commit still works through them") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-commit");
        const mutex lock(zk, dir + "/lock");
        const lock_owner me;
        lock_guard outer = co_await lock.acquire(as(me));
        {
            lock_guard inner = co_await lock.acquire(as(me));
            co_await inner.release();
            CHECK(inner.reason() == loss_reason::released);
        }
        CHECK(outer.held());
        transaction t;
        t.create(dir + "/done");
        const std::vector<step_result> done = co_await outer.commit(t);
        CHECK(done.size() == 1);
        co_await outer.release();
        // It is free: for the same owner, too, there is a new node.
        const lock_guard next = co_await lock.acquire(as(me));
        CHECK(next.token() > outer.token());
    };
    with_client(body);
}

TEST_CASE("lock_owner: two coroutines of one owner that acquire at once share one node") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-at-once");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard stranger = co_await lock.acquire();
        const lock_owner me;
        taker a(executor, lock.acquire(as(me))), b(executor, lock.acquire(as(me)));
        co_await until_queued(zk, dir, 2);
        co_await turns(20);
        co_await until_queued(zk, dir, 2);
        co_await stranger.release();
        co_await a.got();
        co_await b.got();
        CHECK(a.guard().path() == b.guard().path());
        co_await until_queued(zk, dir, 1);
        a.release();
        CHECK(b.guard().held());
        co_await b.guard().release();
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

TEST_CASE("lock_owner: different owners exclude each other") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-different");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        const lock_owner me, you;
        lock_guard mine = co_await lock.acquire(as(me));
        auto none = co_await lock.try_acquire(as(you));
        CHECK_FALSE(none);
        none = co_await lock.try_acquire();  // nobody in particular
        CHECK_FALSE(none);
        none = co_await lock.try_acquire_for(20ms, as(you));
        CHECK_FALSE(none);
        co_await until_queued(zk, dir, 1);
        taker yours(executor, lock.acquire(as(you)));
        co_await until_queued(zk, dir, 2);
        auto again = co_await lock.try_acquire(as(me));  // not behind the other one
        REQUIRE(again);
        co_await mine.release();
        CHECK_FALSE(yours.has_it());
        co_await again->release();
        co_await yours.got();
    };
    with_client(body);
}

TEST_CASE("lock_owner: one owner may have several locks") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-several");
        const mutex a(zk, dir + "/a"), b(zk, dir + "/b");
        const lock_owner me;
        lock_guard first = co_await a.acquire(as(me));
        const lock_guard second = co_await b.acquire(as(me));
        CHECK(first.path() != second.path());
        co_await first.release();
        CHECK(second.held());
        auto stranger = co_await b.try_acquire();
        CHECK_FALSE(stranger);
    };
    with_client(body);
}

TEST_CASE("lock_owner: try_acquire does not wait for another coroutine of its owner") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-try");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard stranger = co_await lock.acquire();
        const lock_owner me;
        taker waiting(executor, lock.acquire(as(me)));
        co_await until_queued(zk, dir, 2);
        auto guard = co_await lock.try_acquire(as(me));
        CHECK_FALSE(guard);
        co_await stranger.release();
        co_await waiting.got();
        guard = co_await lock.try_acquire(as(me));
        CHECK(guard);
    };
    with_client(body);
}

TEST_CASE("lock_owner: what an owner has lost it cannot acquire again before it has released it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-loss");
        const mutex lock(zk, dir);
        const lock_owner me;
        lock_guard guard = co_await lock.acquire(as(me));
        lock_guard nested = co_await lock.acquire(as(me));
        co_await zk.remove(guard.path());
        const loss_reason why = co_await nested.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK_FALSE(guard.held());
        auto again = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(as(me)); };
        std::error_code c = co_await code_of(again());
        CHECK(c == errc::lock_lost);
        co_await nested.release();
        c = co_await code_of(again());
        CHECK(c == errc::lock_lost);
        co_await guard.release();
        const lock_guard anew = co_await lock.acquire(as(me));
        CHECK(anew.held());
    };
    with_client(body);
}

TEST_CASE("lock_owner: a reader that asks to write fails at once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-upgrade");
        const shared_mutex lock(zk, dir);
        const lock_owner me;
        {
            const lock_guard reading = co_await lock.acquire_shared(as(me));
            const lock_guard more = co_await lock.acquire_shared(as(me));
            CHECK(more.path() == reading.path());
            auto write = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(as(me)); };
            const std::string text = co_await message_of(write());
            CHECK(text.starts_with("acquire " + reading.path() + ": "));
            const std::error_code c = co_await code_of(write());
            CHECK(c == errc::would_deadlock);
            auto try_to_write = [&]() -> asio::awaitable<void> { co_await lock.try_acquire(as(me)); };
            const std::error_code tried = co_await code_of(try_to_write());
            CHECK(tried == errc::would_deadlock);
            CHECK(reading.held());
            co_await until_queued(zk, dir, 1);
        }
        co_await until_queued(zk, dir, 0);
        // A writer may read.
        const lock_guard writing = co_await lock.acquire(as(me));
        const lock_guard reading = co_await lock.acquire_shared(as(me));
        CHECK(reading.path() == writing.path());
    };
    with_client(body);
}

TEST_CASE("lock_owner: a body that acquires its own lock again is told so, also when it has run another one under it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-nested-bodies");
        const mutex a(zk, dir + "/a"), b(zk, dir + "/b");
        const unfair_mutex simple(zk, dir + "/simple");
        multi_mutex both(zk);
        both.add(a).add(b);
        auto nothing = []() -> asio::awaitable<void> { co_return; };
        auto again = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await guard.run(nothing);
            const bool is_simple = guard.path() == simple.path();
            asio::awaitable<lock_guard> acquiring = is_simple ? simple.acquire() : a.acquire();
            (void)co_await std::move(acquiring);
        };
        std::error_code c = co_await code_of(a.with_lock(again));
        CHECK(c == errc::would_deadlock);
        c = co_await code_of(both.with_lock(again));
        CHECK(c == errc::would_deadlock);
        c = co_await code_of(simple.with_lock(again));
        CHECK(c == errc::would_deadlock);

        // Within the work under another lock, which runs on a strand of its own.
        auto nested = [&](lock_guard&) -> asio::awaitable<void> {
            auto inner = [&](lock_guard&) -> asio::awaitable<void> { (void)co_await a.acquire(); };
            co_await b.with_lock(inner);
        };
        c = co_await code_of(a.with_lock(nested));
        CHECK(c == errc::would_deadlock);

        // The usual form: a callee takes the lock for the same owner.
        const lock_owner me;
        auto callee = [](lock_guard&) -> asio::awaitable<void> { co_return; };
        auto forgetful = [&](lock_guard&) -> asio::awaitable<void> {
            co_await with_lock(a.acquire(as(me)), callee);
            (void)co_await a.acquire();
        };
        c = co_await code_of(with_lock(a.acquire(as(me)), forgetful));
        CHECK(c == errc::would_deadlock);
        // After the last body nobody waits for itself.
        co_await a.with_lock(callee);
        for (const char* lock : {"/a", "/b"}) co_await until_queued(zk, dir + lock, 0);
    };
    with_client(body);
}

TEST_CASE("lock_owner: when the first of its coroutines is cancelled the second goes on") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-cancel");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        const lock_owner me;
        lock_guard stranger = co_await lock.acquire();
        taker first(executor, lock.acquire(as(me)));
        co_await until_queued(zk, dir, 2);
        taker second(executor, lock.acquire(as(me))), third(executor, lock.acquire(as(me)));
        co_await turns(5);
        third.cancel();  // which does not acquire itself
        const std::string text = co_await message_of(third.got());
        CHECK(text == "acquire " + dir + ": cancelled");
        first.cancel();
        const std::error_code c = co_await first.code();
        CHECK(c == condition::cancelled);
        co_await stranger.release();
        co_await second.got();
        co_await until_queued(zk, dir, 1);
        co_await second.guard().release();
        co_await until_queued(zk, dir, 0);
    };
    with_client(body);
}

TEST_CASE("lock_owner: when the client is closed by which the first of its coroutines acquires, the others go on",
          "[real-loop]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-two-clients");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        co_await other.connected();
        const mutex lock(zk, dir), theirs(other, dir);
        const lock_owner me;
        lock_guard stranger = co_await lock.acquire();
        asio::io_context busy;  // so the first comes to hear of it last
        taker first(busy.get_executor(), theirs.acquire(as(me)));
        busy.poll();
        co_await until_queued(zk, dir, 2);
        taker second(executor, lock.acquire(as(me))), third(executor, lock.acquire(as(me)));
        co_await turns(5);
        co_await other.close();
        co_await stranger.release();
        co_await second.got();
        busy.restart();
        busy.run();
        CHECK(first.ended());
        CHECK_FALSE(first.has_it());
        co_await third.got();
        CHECK(second.guard().path() == third.guard().path());
        CHECK(third.guard().held());
        const lock_guard joined = co_await lock.acquire(as(me));
        CHECK(joined.path() == third.guard().path());
    };
    with_client(body);
}

TEST_CASE("lock_owner: an acquire that is cancelled at any moment leaves no node") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner-cancel-anywhere");
        const mutex lock(zk, dir);
        const lock_owner me;
        auto attempt = [&]() -> asio::awaitable<void> { const lock_guard g = co_await lock.acquire(as(me)); };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 0);
        co_await until_queued(zk, dir, 0);
        {
            const lock_guard mine = co_await lock.acquire(as(me));
            co_await cancel_everywhere(attempt);
            co_await until_queued(zk, dir, 1);
            CHECK(mine.held());
        }
        co_await until_queued(zk, dir, 0);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("lock_owner: the client that has acquired stays open for the guards that others have joined with") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "owner_of_two_clients");
        const auto how = acquire_options().owner(lock_owner());
        auto other = std::make_unique<test_client>(co_await asio::this_coro::executor, options(zk.options().servers()));
        lock_guard first = co_await mutex(*other, dir).acquire(how);
        lock_guard joined = co_await mutex(zk, dir).acquire(how);
        first = lock_guard();
        other.reset();
        co_await zk.sync(dir);
        co_await zk.sync(dir);
        CHECK(joined.held());
        const auto there = co_await zk.exists(joined.path());
        CHECK(there);
        co_await joined.release();
    };
    with_client(body);
}
