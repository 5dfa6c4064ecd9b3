#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <poll.h>

#include <stdexcept>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE(
    "expiry of the holder: it is told, its body is cancelled, its commit refused, and the next one gets the lock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const mutex theirs(victim, dir + "/lock"), ours(zk, dir + "/lock");

        bool cancelled = false, held_afterwards = true;
        std::error_code committed;
        loss_reason why = loss_reason::none;
        std::optional<fencing_token> old_token;
        auto work = [&](lock_guard& guard) -> asio::awaitable<void> {
            old_token = guard.token();
            try {
                why = co_await guard.lost();
                asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
                co_await never.async_wait(asio::use_awaitable);
            } catch (const std::system_error& e) {
                cancelled = e.code() == condition::cancelled;
            }
            held_afterwards = guard.held();
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            transaction t;
            t.create(dir + "/late");
            committed = co_await code_of(guard.commit(t));
        };
        running holding(executor, theirs.with_lock(work));
        co_await until_queued(zk, dir + "/lock", 1);
        auto wait = [&]() -> asio::awaitable<void> {
            lock_guard guard = co_await ours.acquire();
            CHECK(guard.token() > *old_token);
            transaction t;
            t.create(dir + "/mine");
            co_await guard.commit(t);
            co_await guard.release();
        };
        running waiting(executor, wait());
        co_await until_queued(zk, dir + "/lock", 2);

        co_await expire_session(victim);
        const std::error_code c = co_await holding.code();
        CHECK(c == errc::lock_lost);
        CHECK(cancelled);
        CHECK_FALSE(held_afterwards);
        CHECK(committed == errc::lock_lost);
        const std::exception_ptr e = co_await waiting.end();
        CHECK_FALSE(e);
        const auto late = co_await zk.exists(dir + "/late");
        CHECK_FALSE(late);
        const auto mine = co_await zk.exists(dir + "/mine");
        CHECK(mine);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("expiry while waiting ends the acquire") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-expiry-waiting");
        const auto executor = co_await asio::this_coro::executor;
        const mutex ours(zk, dir);
        lock_guard guard = co_await ours.acquire();
        const test_client victim(executor, options());
        const mutex theirs(victim, dir);
        auto wait = [&]() -> asio::awaitable<void> { (void)co_await theirs.acquire(); };
        running waiting(executor, wait());
        co_await until_queued(zk, dir, 2);
        co_await expire_session(victim);
        const std::error_code c = co_await waiting.code();
        CHECK(c == errc::session_expired);
        co_await until_queued(zk, dir, 1);
        CHECK(guard.held());
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("a lock's node that an operator deletes: the holder is told, a waiter queues again") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-deleted");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        std::optional<lock_guard> first(co_await lock.acquire());
        std::optional<lock_guard> second;
        auto wait = [&]() -> asio::awaitable<void> { second.emplace(co_await lock.acquire()); };
        running waiting(executor, wait());
        co_await until_queued(zk, dir, 2);
        const std::vector<contender_info> before = co_await lock.contenders();

        // The waiter's node: it comes back, when its predecessor goes or its lease is looked after, whichever is first.
        co_await zk.remove(before[1].path);
        CHECK(first->held());
        first.reset();
        co_await waiting.end();
        REQUIRE(second);
        auto whole = [&]() -> asio::awaitable<bool> {
            const auto node = co_await zk.exists(second->path());
            co_return node.has_value() == second->held();
        };
        co_await eventually(whole);

        // The holder's.
        second.reset();
        co_await until_queued(zk, dir, 0);
        const lock_guard third = co_await lock.acquire();
        co_await zk.remove(third.path());
        const loss_reason why = co_await third.lost();
        CHECK(why == loss_reason::node_deleted);
        CHECK_FALSE(third.held());
        transaction t;
        t.create(dir + "/late");
        const std::error_code c = co_await code_of(third.commit(t));
        CHECK(c == errc::lock_lost);
    };
    with_client(body);
}

TEST_CASE("the server itself refuses the commit of a lock that is gone") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-commit");
        const mutex lock(zk, dir + "/lock");
        const lock_guard guard = co_await lock.acquire();
        transaction good;
        good.create(dir + "/a").create(dir + "/b");
        const std::vector<step_result> done = co_await guard.commit(good);
        REQUIRE(done.size() == 2);
        CHECK(done[0].path == dir + "/a");

        transaction wrong;
        wrong.set(dir + "/missing", "x");
        const std::error_code other = co_await code_of(guard.commit(wrong));
        CHECK(other == zk_errc::no_node);  // of the step, not of the lock
        CHECK(guard.held());

        // The deletion and the commit are sent together: we cannot have noticed.
        const pending_removal gone = toolbox(zk).ensure_removed(guard.path());
        transaction late;
        late.create(dir + "/late");
        const std::error_code c = co_await code_of(guard.commit(late));
        CHECK(c == errc::lock_lost);
        const auto there = co_await zk.exists(dir + "/late");
        CHECK_FALSE(there);
        co_await gone.result();
    };
    with_client(body);
}

TEST_CASE("what a body throws whose lock is lost is nested in the error that says so") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-nested");
        const mutex lock(zk, dir);
        std::string nested;
        auto under = [&](auto& work) -> asio::awaitable<std::error_code> {
            std::error_code code;
            nested = "nothing";
            try {
                co_await lock.with_lock(work);
            } catch (const error& e) {
                code = e.code();
                try {
                    std::rethrow_if_nested(e);
                } catch (const std::runtime_error& inner) {
                    nested = inner.what();
                }
            }
            co_return code;
        };
        auto throwing = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await zk.remove(guard.path());
            co_await guard.lost();
            throw std::runtime_error("mine");
        };
        std::error_code c = co_await under(throwing);
        CHECK(c == errc::lock_lost);
        CHECK(nested == "mine");
        // A commit that was refused, and nobody caught it.
        auto committing = [&](lock_guard& guard) -> asio::awaitable<void> {
            const pending_removal gone = toolbox(zk).ensure_removed(guard.path());
            transaction late;
            late.create(dir + "-late");
            co_await guard.commit(late);
        };
        c = co_await under(committing);
        CHECK(c == errc::lock_lost);
        CHECK(nested.starts_with("commit " + dir));
        // That the body was cancelled is no news.
        auto endless = [&](lock_guard& guard) -> asio::awaitable<void> {
            co_await zk.remove(guard.path());
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        };
        c = co_await under(endless);
        CHECK(c == errc::lock_lost);
        CHECK(nested == "nothing");
    };
    with_client(body);
}

TEST_CASE("after a commit that was refused because the node is gone the lock is lost at once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-commit-lost");
        const mutex lock(zk, dir);
        const lock_owner me;
        const lock_guard guard = co_await lock.acquire(acquire_options().owner(me));
        const lock_guard same = co_await lock.acquire(acquire_options().owner(me));
        const pending_removal gone = toolbox(zk).ensure_removed(guard.path());  // sent together with the commit
        transaction late;
        late.create(dir + "/late");
        const std::error_code c = co_await code_of(guard.commit(late));
        CHECK(c == errc::lock_lost);
        CHECK_FALSE(guard.held());
        CHECK(guard.reason() == loss_reason::node_deleted);
        CHECK_FALSE(same.held());
        const loss_reason why = co_await same.lost();
        CHECK(why == loss_reason::node_deleted);
        co_await gone.result();
    };
    with_client(body);
}

TEST_CASE("whoever waits to be asked for the lock and finds its node gone has lost it at once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-revoked-lost");
        const lock_guard guard = co_await mutex(zk, dir).acquire();
        const running waiting(co_await asio::this_coro::executor, guard.revoke_requested());
        auto watching = [&]() -> asio::awaitable<bool> { co_return !watched_below(dir).empty(); };
        co_await eventually(watching);
        co_await zk.remove(guard.path());
        const std::error_code c = co_await waiting.code();
        CHECK(c == errc::lock_lost);
        CHECK_FALSE(guard.held());
        CHECK(guard.reason() == loss_reason::node_deleted);
    };
    with_client(body);
}

TEST_CASE("a lock that is held for longer than its session's timeout stays held") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-long");
        const mutex lock(zk, dir);
        const lock_guard guard = co_await lock.acquire();
        const session s = co_await zk.current_session();
        const auto until = boot_clock::now() + s.timeout() * 3 / 2;
        auto passed = [&]() -> asio::awaitable<bool> {
            if (!guard.held()) throw std::runtime_error("not held any more");
            co_return boot_clock::now() > until;
        };
        co_await eventually(passed);
        CHECK(guard.reason() == loss_reason::none);
    };
    with_client(body);
}

TEST_CASE("a process that stands still for longer than its lease knows it at once, before anything else",
          "[real-time]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "mutex-stopped");
        const mutex lock(zk, dir + "/lock");
        const lock_guard guard = co_await lock.acquire();
        // An answer is on its way and waits in the socket meanwhile: it must not count.
        const pending_create mark = toolbox(zk).start_create(dir + "/mark", "", create_options());
        CHECK(guard.held());
        const auto until = guard.held_until();
        while (boot_clock::now() < until + 1500ms) ::poll(nullptr, 0, 50);  // as SIGSTOP does
        CHECK_FALSE(guard.held());
        transaction t;
        t.create(dir + "/late");
        const std::error_code c = co_await code_of(guard.commit(t));
        CHECK(c == errc::lock_lost);
        const loss_reason why = co_await guard.lost();
        CHECK((why == loss_reason::lease_ended || why == loss_reason::session_expired));
        CHECK_FALSE(guard.held());
        co_await code_of(mark.answered());
    };
    with_client(options().session_timeout(paced(2s)), body);
}
