#include "unit/handles/task_scope_steps.hpp"

using namespace zkasio;
using namespace zkasio::test;
using asio::cancellation_type;

namespace {

asio::awaitable<void> write_that_was_sent() {
    bool cancelled = false;
    try {
        co_await forever();
    } catch (const std::system_error&) {
        cancelled = true;
    }
    if (cancelled) throw error(asio::error::operation_aborted, "set", "/a", {}, true);
}

asio::awaitable<void> throws_when_cancelled() {
    try {
        co_await forever();
    } catch (const std::system_error&) {
        throw std::runtime_error("while it ended");
    }
}

template <class Scoped>
asio::awaitable<void> all_types_enabled(Scoped& scoped) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await scoped();
}

}  // namespace

TEST_CASE("task scope: the body and all tasks receive the cancellation of the caller as it is", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        for (const auto how : {cancellation_type::terminal, cancellation_type::partial, cancellation_type::total}) {
            cancellation_type task{}, other{}, body{};
            bool started_later = true;
            auto scoped = [&]() -> asio::awaitable<void> {
                co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                    tasks.spawn(until_cancelled_by(task));
                    tasks.spawn([&]() -> asio::awaitable<void> {
                        co_await until_cancelled_by(other);
                    });
                    std::exception_ptr ended;
                    try {
                        co_await until_cancelled_by(body);
                    } catch (...) {
                        ended = std::current_exception();
                    }
                    started_later = tasks.spawn(forever());
                    std::rethrow_exception(ended);
                });
            };
            running scope(loop.executor(), all_types_enabled(scoped));
            co_await settle();
            scope.cancel(how);
            const std::error_code code = co_await scope.code();
            CHECK(code == asio::error::operation_aborted);
            CHECK(task == how);
            CHECK(other == how);
            CHECK(body == how);
            CHECK_FALSE(started_later);
        }
    };
    loop.run(steps());
}

TEST_CASE("task scope: a type of cancellation that the caller has not enabled has no effect", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        cancellation_type task{};
        auto scoped = [&]() -> asio::awaitable<void> {
            co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                tasks.spawn(until_cancelled_by(task));
                co_return;
            });
        };
        running scope(loop.executor(), scoped());
        co_await settle();
        scope.cancel(cancellation_type::total);
        scope.cancel(cancellation_type::partial);
        co_await settle();
        CHECK_FALSE(scope.ended());
        scope.cancel();
        co_await scope.end();
        CHECK(task == cancellation_type::terminal);
    };
    loop.run(steps());
}

TEST_CASE("task scope: cancelled at every step of its beginning and its end it always ends", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        int completed = 0, cancelled = 0;
        for (int step = 0; step < 60; ++step) {
            gate open(loop.executor());
            open.open();
            auto scoped = [&]() -> asio::awaitable<void> {
                co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                    tasks.spawn(settle());
                    tasks.spawn(open.wait());
                    co_await settle();
                    tasks.spawn(settle());
                });
            };
            running scope(loop.executor(), scoped());
            for (int i = 0; i < step; ++i) co_await asio::post(loop.executor(), asio::use_awaitable);
            scope.cancel();
            const std::error_code code = co_await scope.code();
            ++(code ? cancelled : completed);
            CHECK((!code || code == asio::error::operation_aborted));
        }
        CHECK(cancelled > 20);
        CHECK(completed > 2);
    };
    loop.run(steps());
}

TEST_CASE("task scope: it waits for a task that takes its time after it was cancelled", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        gate slow(loop.executor());
        bool ended = false;
        auto scoped = [&]() -> asio::awaitable<void> {
            co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                tasks.spawn(reluctantly(slow, ended));
                co_await forever();
            });
        };
        running scope(loop.executor(), scoped());
        co_await settle();
        scope.cancel();
        co_await settle();
        CHECK_FALSE(scope.ended());
        slow.open();
        const std::error_code code = co_await scope.code();
        CHECK(ended);
        CHECK(code == asio::error::operation_aborted);
    };
    loop.run(steps());
}

TEST_CASE("task scope: a failure after the cancellation does not interrupt those who are ending", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        gate slow(loop.executor());
        bool ended = false;
        auto scoped = [&]() -> asio::awaitable<void> {
            co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                tasks.spawn([&]() -> asio::awaitable<void> {
                    std::error_code code;
                    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
                    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
                    co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
                    co_await slow.wait();
                    ended = true;
                });
                tasks.spawn(throws_when_cancelled());
                co_return;
            });
        };
        running scope(loop.executor(), scoped());
        co_await settle();
        scope.cancel();
        co_await settle();
        slow.open();
        const std::exception_ptr failed = co_await scope.end();
        CHECK(ended);
        CHECK_THROWS_AS(std::rethrow_exception(failed), std::runtime_error);
    };
    loop.run(steps());
}

TEST_CASE("task scope: when all complete in spite of the cancellation the result counts", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        for (const bool refused : {false, true}) {
            gate slow(loop.executor());
            bool ended = false;
            int result = 0;
            auto scoped = [&]() -> asio::awaitable<void> {
                result = co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<int> {
                    tasks.spawn(reluctantly(slow, ended));
                    co_await reluctantly(slow, ended);
                    if (refused) tasks.spawn(settle());
                    co_return 4;
                });
            };
            running scope(loop.executor(), scoped());
            co_await settle();
            scope.cancel();
            co_await settle();
            slow.open();
            const std::error_code code = co_await scope.code();
            CHECK(result == (refused ? 0 : 4));
            CHECK((code == asio::error::operation_aborted) == refused);
        }
    };
    loop.run(steps());
}

TEST_CASE("task scope: a real failure is not hidden by the cancellation and the unknown outcome of a write is told",
          "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        for (const bool fails : {true, false}) {
            auto scoped = [&]() -> asio::awaitable<void> {
                co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
                    tasks.spawn(forever());
                    tasks.spawn(write_that_was_sent());
                    if (fails) tasks.spawn(throws_when_cancelled());
                    co_await forever();
                });
            };
            running scope(loop.executor(), scoped());
            co_await settle();
            scope.cancel();
            std::string text;
            bool unknown = false;
            const std::exception_ptr ended = co_await scope.end();
            try {
                std::rethrow_exception(ended);
            } catch (const error& e) {
                unknown = e.outcome_unknown();
            } catch (const std::exception& e) {
                text = e.what();
            }
            CHECK(text == (fails ? "while it ended" : ""));
            CHECK(unknown == !fails);
        }
    };
    loop.run(steps());
}

TEST_CASE("task scope: cancel() from the body ends the tasks and the result of the body counts", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        cancellation_type task{};
        std::error_code next;
        const int result = co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<int> {
            tasks.spawn(until_cancelled_by(task));
            CHECK_FALSE(tasks.cancelled());
            tasks.cancel();
            tasks.cancel();
            CHECK(tasks.cancelled());
            CHECK_FALSE(tasks.spawn(forever()));
            try {
                co_await settle();
            } catch (const std::system_error& e) {
                next = e.code();
            }
            co_return 3;
        });
        CHECK(result == 3);
        CHECK(task == cancellation_type::terminal);
        CHECK(next == asio::error::operation_aborted);
    };
    loop.run(steps());
}

TEST_CASE("task scope: cancel() from a task ends the body and then there is no result", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        auto nothing_returned = [&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(forever());
            tasks.spawn([&]() -> asio::awaitable<void> {
                co_await settle();
                tasks.cancel();
            });
            co_await forever();
        };
        co_await with_task_scope(nothing_returned);
        auto number = [&](task_scope& tasks) -> asio::awaitable<int> {
            co_await nothing_returned(tasks);
            co_return 1;
        };
        const std::error_code code = co_await code_of(with_task_scope(number));
        CHECK(code == asio::error::operation_aborted);
    };
    loop.run(steps());
}
