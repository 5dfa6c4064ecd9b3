#include "unit/handles/task_scope_steps.hpp"

#include <asio/detached.hpp>
#include <asio/strand.hpp>
#include <asio/use_future.hpp>

#include <future>
#include <memory>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// What a closure has captured: how often it was copied.
struct counts_copies {
    static inline int made;
    counts_copies() = default;
    counts_copies(const counts_copies&) noexcept { ++made; }
    counts_copies(counts_copies&&) noexcept {}
};

asio::awaitable<void> note(std::string what, std::vector<std::string>& to) {
    to.push_back(what);
    co_return;
}

asio::awaitable<void> spawn_tree(task_scope& tasks, int depth, int& leaves) {
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    if (depth == 0) ++leaves;
    for (int i = 0; depth > 0 && i < 2; ++i) tasks.spawn(spawn_tree(tasks, depth - 1, leaves));
}

}  // namespace

TEST_CASE("task scope: it ends when the body and all tasks have ended", "[task_scope]") {
    test_loop loop;
    gate first(loop.executor()), second(loop.executor()), of_the_body(loop.executor());
    bool over = false;
    auto scoped = [&]() -> asio::awaitable<void> {
        co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
            CHECK(tasks.spawn(first.wait()));
            CHECK(tasks.spawn(second.wait()));
            CHECK(tasks.size() == 2);
            co_await of_the_body.wait();
            CHECK(tasks.size() == 1);
        });
        over = true;
    };
    auto steps = [&]() -> asio::awaitable<void> {
        running scope(loop.executor(), scoped());
        co_await settle();
        first.open();
        co_await settle();
        of_the_body.open();
        co_await settle();
        CHECK_FALSE(over);
        second.open();
        co_await scope.end();
        CHECK(over);
    };
    loop.run(steps());
}

TEST_CASE("task scope: without tasks it is its body, and its result is the body's", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        const int number = co_await with_task_scope([](task_scope&) -> asio::awaitable<int> { co_return 7; });
        CHECK(number == 7);
        const auto moved_out = co_await with_task_scope([](task_scope& tasks) -> asio::awaitable<std::unique_ptr<int>> {
            tasks.spawn(settle());
            co_return std::make_unique<int>(8);
        });
        CHECK(*moved_out == 8);
        std::function<asio::awaitable<void>(task_scope&)> empty;
        const std::string refused = co_await message_of(with_task_scope(empty));
        CHECK(refused == "with_task_scope: invalid argument (the body is empty)");
    };
    loop.run(steps());
}

TEST_CASE("task scope: a body with a name is not copied and one that is moved lives until all tasks have ended",
          "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        counts_copies none;
        auto named = [none](task_scope&) -> asio::awaitable<void> { co_return; };
        counts_copies::made = 0;
        co_await with_task_scope(named);
        co_await with_task_scope(moved(named));
        CHECK(counts_copies::made == 0);

        int seen = 0;
        auto move_only = [&seen, p = std::make_unique<int>(9)](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn([&seen, in_the_closure = p.get()]() -> asio::awaitable<void> {
                co_await settle();
                seen = *in_the_closure;
            });
            co_return;
        };
        auto scope = with_task_scope(moved(move_only));
        co_await std::move(scope);
        CHECK(seen == 9);
    };
    loop.run(steps());
}

TEST_CASE("task scope: a task begins within spawn and may be a closure with captures", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        std::vector<std::string> seen;
        co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(note("task", seen));
            seen.push_back("body");
            tasks.spawn(
                [&seen, text = std::string("a text that is too long for a small string")]() -> asio::awaitable<void> {
                    co_await settle();
                    seen.push_back(text);
                });
            co_return;
        });
        CHECK(seen == std::vector<std::string>{"task", "body", "a text that is too long for a small string"});
    };
    loop.run(steps());
}

TEST_CASE("task scope: tasks spawn tasks when the body has ended", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        int leaves = 0;
        co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(spawn_tree(tasks, 6, leaves));
            co_return;
        });
        CHECK(leaves == 64);
    };
    loop.run(steps());
}

TEST_CASE("task scope: the first exception cancels the others and is the one that is thrown", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        asio::cancellation_type task{}, body{};
        gate now(loop.executor());
        auto of_a_task = [&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(until_cancelled_by(task));
            tasks.spawn(fail_after(now, "task"));
            now.open();
            co_await until_cancelled_by(body);
        };
        co_await expect_message(with_task_scope(of_a_task), "task");
        CHECK(task == asio::cancellation_type::terminal);
        CHECK(body == asio::cancellation_type::terminal);

        task = {};
        auto of_the_body = [&](task_scope& tasks) -> asio::awaitable<int> {
            tasks.spawn(until_cancelled_by(task));
            co_await settle();
            throw std::runtime_error("body");
        };
        co_await expect_message(with_task_scope(of_the_body), "body");
        CHECK(task == asio::cancellation_type::terminal);

        auto of_all = [&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(forever());
            tasks.spawn(fail_after(now, "first"));
            tasks.spawn(fail_after(now, "second"));
            CHECK(tasks.cancelled());
            co_await fail_with("body");
        };
        co_await expect_message(with_task_scope(of_all), "first");

        auto while_unwinding = [&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn([&]() -> asio::awaitable<void> {
                try {
                    co_await forever();
                } catch (const std::system_error&) {
                    throw std::runtime_error("later");
                }
            });
            throw std::runtime_error("earlier");
            co_return;
        };
        co_await expect_message(with_task_scope(while_unwinding), "earlier");
    };
    loop.run(steps());
}

TEST_CASE("task scope: a cancellation that nobody has asked for is an exception like others", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        asio::cancellation_type task{};
        auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(until_cancelled_by(task));
            tasks.spawn([]() -> asio::awaitable<void> {
                throw error(asio::error::operation_aborted, "mine");
                co_return;
            });
            co_return;
        };
        co_await expect_message(with_task_scope(body), "mine: cancelled");
        CHECK(task == asio::cancellation_type::terminal);
    };
    loop.run(steps());
}

TEST_CASE("task scope: it is for the body and the tasks and takes tasks that are there", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        std::vector<std::error_code> refused;
        auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
            auto gone = forever();
            const auto kept = std::move(gone);
            auto nothing_there = [&]() -> asio::awaitable<void> {
                tasks.spawn(std::move(gone));
                co_return;
            };
            refused.push_back(co_await code_of(nothing_there()));
            auto elsewhere = [&]() -> asio::awaitable<void> {
                co_await settle();
                tasks.spawn(settle());
            };
            auto asks = [&]() -> asio::awaitable<void> {
                co_await settle();
                tasks.size();
            };
            auto cancels = [&]() -> asio::awaitable<void> {
                co_await settle();
                tasks.cancel();
            };
            const auto outside = asio::make_strand(loop.executor());
            refused.push_back(co_await asio::co_spawn(outside, code_of(elsewhere()), asio::use_awaitable));
            refused.push_back(co_await asio::co_spawn(outside, code_of(asks()), asio::use_awaitable));
            refused.push_back(co_await asio::co_spawn(outside, code_of(cancels()), asio::use_awaitable));
            CHECK(tasks.size() == 0);
            CHECK_FALSE(tasks.cancelled());
            co_await asio::co_spawn(tasks.get_executor(), elsewhere(), asio::use_awaitable);
        };
        co_await with_task_scope(body);
        CHECK(refused == std::vector<std::error_code>(4, errc::invalid_argument));
    };
    loop.run(steps());
}

TEST_CASE("task scope: a failing call of a body that is no coroutine is the failure of the body", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        auto body = [](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(forever());
            throw std::runtime_error("called");
        };
        co_await expect_message(with_task_scope(body), "called");
    };
    loop.run(steps());
}

TEST_CASE("task scope: awaited by futures and callbacks and by nobody", "[task_scope]") {
    test_loop loop;
    bool ended = false;
    int called_back = 0;
    auto body = [&](task_scope& tasks) -> asio::awaitable<int> {
        tasks.spawn(settle());
        ended = true;
        co_return 5;
    };
    std::future<int> future = asio::co_spawn(loop.context(), with_task_scope(body), asio::use_future);
    loop.run();
    CHECK(future.get() == 5);
    asio::co_spawn(loop.context(), with_task_scope(body),
                   [&](std::exception_ptr e, int n) { called_back = e ? -1 : n; });
    loop.run();
    CHECK(called_back == 5);
    ended = false;
    asio::co_spawn(loop.context(), with_task_scope(body), asio::detached);
    loop.run();
    CHECK(ended);
}
