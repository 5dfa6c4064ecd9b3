// Bodies that run for as long as a session, a hold or a deadline lets them.

#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/use_awaitable.hpp>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Never ends by itself, and tells how it was cancelled.
asio::awaitable<void> until_cancelled(std::shared_ptr<asio::cancellation_type> how) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    std::exception_ptr failed;
    try {
        co_await never.async_wait(asio::use_awaitable);
    } catch (...) {
        failed = std::current_exception();
    }
    const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
    *how = state.cancelled();
    std::rethrow_exception(failed);
}

}  // namespace

TEST_CASE("core: what runs a body passes on every type of cancellation that its caller has enabled", "[core][hold]") {
    using asio::cancellation_type;
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        const one_shot_event never = toolbox(zk).make_one_shot_event();
        const auto seen = std::make_shared<cancellation_type>();
        std::function<asio::awaitable<void>()> work = [&] { return until_cancelled(seen); };
        std::function<asio::awaitable<void>(session)> with = [&](session) { return until_cancelled(seen); };
        const std::vector<std::function<asio::awaitable<void>()>> runs{
            [&] { return hold.run(work); },
            [&] { return zk.with_session(with); },
            [&]() -> asio::awaitable<void> { co_await never.run_until(work); },
            [&]() -> asio::awaitable<void> { co_await run_with_deadline(boot_clock::now() + 1h, work); },
        };
        for (const auto& run : runs) {
            for (const auto how : {cancellation_type::partial, cancellation_type::total, cancellation_type::terminal}) {
                for (const int turns : {0, 1}) {  // when the body begins, and while it runs
                    *seen = cancellation_type::none;
                    auto enabled = [&]() -> asio::awaitable<void> {
                        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
                        co_await run();
                    };
                    running task(r.loop.executor(), enabled());
                    if (turns > 0) co_await next_turns(r.server);
                    task.cancel(how);
                    const std::error_code code = co_await task.code();
                    CHECK(code == condition::cancelled);
                    if (turns > 0 || *seen != cancellation_type::none) CHECK(*seen == how);
                }
            }
            // What is not enabled has no effect, neither on the caller nor on the body.
            *seen = cancellation_type::none;
            running task(r.loop.executor(), run());
            co_await next_turns(r.server);
            task.cancel(cancellation_type::total);
            task.cancel(cancellation_type::partial);
            co_await next_turns(r.server);
            CHECK_FALSE(task.ended());
            task.cancel();
            const std::error_code code = co_await task.code();
            CHECK(code == condition::cancelled);
            CHECK(*seen == cancellation_type::terminal);
        }
    };
    r.run(body);
}

TEST_CASE("core: what a body of with_session throws when the session ends is nested in the error", "[core][hold]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::string nested;
        auto work = [&](session s) -> asio::awaitable<void> {
            r.server.expire();
            co_await s.ended();
            throw std::runtime_error("mine");
        };
        try {
            co_await zk.with_session(work);
        } catch (const error& e) {
            CHECK(e.code() == errc::session_expired);
            try {
                std::rethrow_if_nested(e);
            } catch (const std::runtime_error& inner) {
                nested = inner.what();
            }
        }
        CHECK(nested == "mine");
    };
    r.run(body);
}

TEST_CASE("a deadline may be any point in time", "[core][hold]") {
    test_loop loop;
    auto body = [&]() -> asio::awaitable<void> {
        std::function<asio::awaitable<void>()> work = [&]() -> asio::awaitable<void> {
            asio::steady_timer moment(co_await asio::this_coro::executor, 1ms);
            co_await moment.async_wait(asio::use_awaitable);
        };
        std::function<asio::awaitable<void>()> endless = [&]() -> asio::awaitable<void> {
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        };
        for (const auto over : {boot_clock::time_point::min(), boot_clock::time_point(), boot_clock::now() - 1s}) {
            const bool ended = co_await run_with_deadline(over, endless);
            CHECK_FALSE(ended);
        }
        for (const auto ahead : {boot_clock::now() + 1h, boot_clock::time_point::max()}) {
            const bool ended = co_await run_with_deadline(ahead, work);
            CHECK(ended);
        }
    };
    loop.run(body());
}

TEST_CASE("core: with_session cancels its body when the session ends", "[core][hold]") {
    rig r;
    bool expire = true;
    r.server.session_timeout = 300ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::error_code seen;
        auto work = [&](session s) -> asio::awaitable<void> {
            if (expire)
                r.server.expire();
            else
                r.server.answer = [](const request&) { return std::nullopt; };
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            try {
                co_await never.async_wait(asio::use_awaitable);
            } catch (const std::system_error& e) {
                seen = e.code();
                throw;
            }
            s.id();
        };
        const std::error_code expired = co_await code_of(zk.with_session(work));
        CHECK(expired == errc::session_expired);
        CHECK(seen == condition::cancelled);

        expire = false;
        seen = {};
        const std::string text = co_await message_of(zk.with_session(work));
        CHECK(has(text, "session expired (lease ended)"));
        CHECK(seen == condition::cancelled);
    };
    r.run(body);
}

TEST_CASE("core: with_session passes on how its body ends", "[core][hold]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        bool ran = false;
        auto good = [&](session s) -> asio::awaitable<void> {
            co_await s.get("/a");
            ran = true;
        };
        co_await zk.with_session(good);
        CHECK(ran);
        auto bad = [&](session) -> asio::awaitable<void> {
            throw std::runtime_error("own");
            co_return;
        };
        const std::string text = co_await message_of(zk.with_session(bad));
        CHECK(text == "own");
    };
    r.run(body);
}
