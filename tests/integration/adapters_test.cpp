// timeout(), as_result() and with_task_scope() with real locks and sessions.
#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/mutex.hpp>

#include <utility>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> endless_task(int& cancelled) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    try {
        co_await never.async_wait(asio::use_awaitable);
    } catch (const std::system_error&) {
        ++cancelled;
        throw;
    }
}

}  // namespace

TEST_CASE("timeout: an acquire that waits for others leaves no node and no watch") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "timeout-contended");
        const test_client other(co_await asio::this_coro::executor, options());
        const mutex lock(zk, dir), theirs(other, dir);
        {
            const lock_guard held = co_await lock.acquire();
            for (const mutex* m : {&lock, &theirs}) {
                for (const auto limit : {0ms, 1ms, 30ms}) {
                    const auto waited = co_await as_result(timeout(limit, m->acquire()));
                    REQUIRE_FALSE(waited);
                    CHECK(waited.error().code() == errc::timed_out);
                    CHECK(waited.error().path() == dir);
                }
                co_await until_queued(zk, dir, 1);
            }
            co_await until_quiet(other, dir);
            co_await until_quiet(zk, dir);
            CHECK(held.held());
        }
        const lock_guard in_time = co_await timeout(20s, theirs.acquire());
        CHECK(in_time.held());
        co_await other.close();
    };
    with_client(options().session_timeout(paced(10s)), body);  // after a quarter of that a holder watches its node
}

TEST_CASE("timeout: a limit about as long as an acquire takes loses no lock") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "timeout-race");
        const mutex lock(zk, dir);
        int granted = 0, too_late = 0;
        for (int i = 0; i < 2000 && (granted < 20 || too_late < 20); ++i) {
            auto got = co_await as_result(timeout(std::chrono::microseconds(i * 50 % 10'000), lock.acquire()));
            ++(got ? granted : too_late);
            if (!got) {
                CHECK(got.error().code() == errc::timed_out);
                continue;
            }
            CHECK(got->held());
            co_await got->release();
        }
        CHECK(granted >= 20);
        CHECK(too_late >= 20);
        co_await until_queued(zk, dir, 0);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("as_result: a create that is refused") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "as-result");
        const auto again = co_await as_result(zk.create(dir));
        REQUIRE_FALSE(again);
        CHECK(again.error().code() == zk_errc::node_exists);
        CHECK(again.error().operation() == "create");
        CHECK(again.error().path() == dir);
        CHECK_FALSE(again.error().outcome_unknown());
        const auto orphan = co_await as_result(zk.create(dir + "/no/parent"));
        REQUIRE_FALSE(orphan);
        CHECK(orphan.error().code() == zk_errc::no_node);
        const auto made = co_await as_result(zk.create(dir + "/child"));
        REQUIRE(made);
        CHECK(made->path == dir + "/child");
    };
    with_client(body);
}

TEST_CASE("task scope: under with_lock all tasks are cancelled when the session expires") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "task-scope-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        const mutex theirs(victim, dir);
        int cancelled = 0;
        bool serving = false, started_later = true, over = false;
        auto serve = [&](task_scope& tasks) -> asio::awaitable<void> {
            for (int i = 0; i < 10; ++i) tasks.spawn(endless_task(cancelled));
            serving = true;
            std::exception_ptr ended;
            try {
                co_await endless_task(cancelled);
            } catch (...) {
                ended = std::current_exception();
            }
            started_later = tasks.spawn(endless_task(cancelled));
            std::rethrow_exception(ended);
        };
        auto work = [&](lock_guard&) -> asio::awaitable<void> {
            std::exception_ptr ended;
            try {
                co_await with_task_scope(serve);
            } catch (...) {
                ended = std::current_exception();
            }
            over = cancelled == 11;
            if (ended) std::rethrow_exception(ended);
        };
        running holding(executor, theirs.with_lock(work));
        const auto is_serving = [&]() -> asio::awaitable<bool> { co_return serving; };
        co_await eventually(is_serving);
        co_await expire_session(victim);
        const std::error_code code = co_await holding.code();
        CHECK(code == errc::lock_lost);
        CHECK(over);
        CHECK_FALSE(started_later);
        co_await until_queued(zk, dir, 0);
        co_await victim.close();
    };
    with_client(body);
}
