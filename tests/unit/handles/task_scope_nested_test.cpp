// Task scopes within each other, within locks, and cancelled from within.
#include "unit/handles/task_scope_steps.hpp"
#include "unit/locks/granted_lock.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/with_lock.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/dispatch.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using asio::cancellation_type;

namespace {

// Ends within the signal that cancels it, and not in a later turn.
asio::awaitable<void> ends_at_once() {
    auto initiate = [](auto handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        slot.assign([waiting = std::make_shared<decltype(handler)>(std::move(handler))](cancellation_type) {
            auto ended = std::move(*waiting);
            const auto executor = asio::get_associated_executor(ended);
            asio::dispatch(executor, [ended = std::move(ended)]() mutable {
                std::move(ended)(std::make_exception_ptr(std::system_error(asio::error::operation_aborted)));
            });
        });
    };
    using token = asio::use_awaitable_t<>;
    co_await asio::async_initiate<const token, void(std::exception_ptr)>(initiate, token());
}

}  // namespace

TEST_CASE("task scope: tasks may end and cancel once more while they are being cancelled", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        int ended = 0;
        auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
            for (int i = 0; i < 5; ++i) {
                tasks.spawn(forever());
                tasks.spawn([&]() -> asio::awaitable<void> {
                    std::exception_ptr e;
                    try {
                        co_await ends_at_once();
                    } catch (...) {
                        e = std::current_exception();
                    }
                    ++ended;
                    tasks.cancel();
                    std::rethrow_exception(e);
                });
            }
            co_await settle();
            const std::size_t before = tasks.size();
            tasks.cancel();
            CHECK(before - tasks.size() == 5);
        };
        co_await with_task_scope(body);
        CHECK(ended == 5);
    };
    loop.run(steps());
}

TEST_CASE("task scope: nested scopes", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        cancellation_type inner{}, sibling{};
        gate now(loop.executor());
        auto nest = [&](task_scope& outer) -> asio::awaitable<void> {
            outer.spawn(until_cancelled_by(sibling));
            outer.spawn([&]() -> asio::awaitable<void> {
                co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                    tasks.spawn(until_cancelled_by(inner));
                    tasks.spawn(fail_after(now, "inside"));
                    co_return;
                });
            });
            co_return;
        };
        auto scoped = [&]() -> asio::awaitable<void> { co_await with_task_scope(nest); };
        running cancelled(loop.executor(), scoped());
        co_await settle();
        cancelled.cancel();
        const std::error_code code = co_await cancelled.code();
        CHECK(code == asio::error::operation_aborted);
        CHECK(inner == cancellation_type::terminal);
        CHECK(sibling == cancellation_type::terminal);

        inner = sibling = {};
        now.open();
        co_await expect_message(scoped(), "inside");
        CHECK(inner == cancellation_type::terminal);
        CHECK(sibling == cancellation_type::terminal);
    };
    loop.run(steps());
}

TEST_CASE("task scope: under a lock that is lost all tasks are cancelled and awaited", "[task_scope]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        cancellation_type seen{};
        bool cleaned_up = false;
        auto under_lock = [&](lock_guard&) -> asio::awaitable<void> {
            co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                tasks.spawn(until_cancelled_by(seen));
                tasks.spawn([&]() -> asio::awaitable<void> {
                    std::error_code code;
                    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
                    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
                    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                    co_await settle();
                    cleaned_up = true;
                });
                r.server.expire();
                co_await forever();
            });
        };
        co_await expect_code(with_lock(acquired_on(s), under_lock), errc::lock_lost);
        CHECK(seen == cancellation_type::terminal);
        CHECK(cleaned_up);
    };
    r.run(body);
}

TEST_CASE("task scope: a limit that passes in a task or around the scope", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        // A limit that has passed is a failure of a task, and not a cancellation that the scope has asked for.
        auto body = [](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(timeout(1ms, forever()));
            co_await forever();
        };
        co_await expect_code(with_task_scope(body), errc::timed_out);
        auto endless = [](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(forever());
            co_return;
        };
        co_await expect_code(timeout(1ms, with_task_scope(endless)), errc::timed_out);
    };
    loop.run(steps());
}
