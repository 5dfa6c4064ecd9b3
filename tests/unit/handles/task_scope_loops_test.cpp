// Task scopes on loops of all kinds: thread pools, strands, loops that are destroyed; and what ten thousand tasks cost.
#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/counting_new.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/detached.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <typeinfo>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Counts itself among those that live, as a local variable of a coroutine.
class counted_life {
public:
    explicit counted_life(int& alive) : alive_(alive) { ++alive_; }
    ~counted_life() { --alive_; }
    counted_life(const counted_life&) = delete;
    counted_life& operator=(const counted_life&) = delete;

private:
    int& alive_;
};

asio::awaitable<void> live_forever(int& alive) {
    const counted_life life(alive);
    co_await forever();
}

// A coroutine that must be there as long as tasks refer to it: its destructor looks.
class outlives {
public:
    outlives(const int& tasks, int& seen) : tasks_(tasks), seen_(seen) {}
    ~outlives() { seen_ = tasks_; }
    outlives(const outlives&) = delete;
    outlives& operator=(const outlives&) = delete;

private:
    const int& tasks_;
    int& seen_;
};

asio::awaitable<void> scope_of_a_loop(int& tasks_alive, int& left_at_the_end, bool body_ends) {
    const outlives local(tasks_alive, left_at_the_end);
    auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) tasks.spawn(live_forever(tasks_alive));
        tasks.spawn([&]() -> asio::awaitable<void> {
            co_await with_task_scope([&](task_scope& inner) -> asio::awaitable<void> {
                inner.spawn(live_forever(tasks_alive));
                co_await live_forever(tasks_alive);
            });
        });
        if (!body_ends) co_await forever();
    };
    co_await with_task_scope(body);
}

}  // namespace

TEST_CASE("task scope: a loop that is destroyed destroys the tasks before what they refer to", "[task_scope]") {
    for (const bool body_ends : {false, true}) {
        int tasks_alive = 0, left = -1;
        {
            asio::io_context io;
            asio::co_spawn(io, scope_of_a_loop(tasks_alive, left, body_ends), asio::detached);
            while (io.poll_one() > 0) {
            }
            CHECK(tasks_alive == 5);
        }
        CHECK(tasks_alive == 0);
        CHECK(left == 0);
    }
}

TEST_CASE("task scope: a loop that is stopped while a scope is cancelled leaks nothing", "[task_scope]") {
    for (int turns = 0; turns < 40; ++turns) {
        int tasks_alive = 0, left = -1;
        asio::cancellation_signal stop;
        {
            asio::io_context io;
            asio::co_spawn(io, scope_of_a_loop(tasks_alive, left, false),
                           asio::bind_cancellation_slot(stop.slot(), asio::detached));
            for (int i = 0; i < turns; ++i) io.poll_one();
            stop.emit(asio::cancellation_type::terminal);
            for (int i = 0; i < turns; ++i) io.poll_one();
        }
        CHECK(tasks_alive == 0);
        if (turns > 0) CHECK(left == 0);
    }
}

TEST_CASE("task scope: on a thread pool the body and all tasks take turns on a strand", "[task_scope]") {
    asio::thread_pool threads(4);
    int inside = 0, counted = 0;
    auto busy = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 20; ++i) {
            if (++inside != 1) counted = -1000000;
            ++counted;
            --inside;
            co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        }
    };
    auto body = [&](task_scope& tasks) -> asio::awaitable<int> {
        for (int i = 0; i < 50; ++i) tasks.spawn(busy());
        co_await busy();
        co_return counted;
    };
    const int at_the_end = asio::co_spawn(threads, with_task_scope(body), asio::use_future).get();
    CHECK(at_the_end > 0);
    CHECK(counted == 51 * 20);
    threads.join();
}

TEST_CASE("task scope: cancelled by another thread of a pool", "[task_scope]") {
    asio::thread_pool threads(4);
    for (int round = 0; round < 50; ++round) {
        auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
            for (int i = 0; i < 10; ++i) tasks.spawn(forever());
            co_await forever();
        };
        const auto strand = asio::make_strand(threads);
        asio::cancellation_signal stop;
        auto ended =
            asio::co_spawn(strand, with_task_scope(body), asio::bind_cancellation_slot(stop.slot(), asio::use_future));
        asio::post(strand, [&] { stop.emit(asio::cancellation_type::terminal); });
        std::error_code code;
        try {
            ended.get();
        } catch (const std::system_error& e) {
            code = e.code();
        }
        CHECK(code == asio::error::operation_aborted);
    }
    threads.join();
}

TEST_CASE("task scope: on a strand it stays there", "[task_scope]") {
    test_loop loop;
    const auto strand = asio::make_strand(loop.executor());
    const asio::any_io_executor as_any = strand;
    auto scoped = [&]() -> asio::awaitable<void> {
        asio::any_io_executor of_the_body, of_a_task;
        co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
            of_the_body = co_await asio::this_coro::executor;
            tasks.spawn([&]() -> asio::awaitable<void> { of_a_task = co_await asio::this_coro::executor; });
            CHECK(tasks.get_executor() == of_the_body);
        });
        CHECK(of_the_body == as_any);
        CHECK(of_a_task == as_any);
    };
    asio::co_spawn(strand, scoped(), asio::detached);
    loop.run();
}

TEST_CASE("task scope: ten thousand tasks are cancelled at once and end", "[task_scope]") {
    test_loop loop;
    int alive = 0;
    auto scoped = [&]() -> asio::awaitable<void> {
        co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
            for (int i = 0; i < 10'000; ++i) tasks.spawn(live_forever(alive));
            CHECK(tasks.size() == 10'000);
            CHECK(alive == 10'000);
            tasks.cancel();
            co_return;
        });
        CHECK(alive == 0);
    };
    loop.run(scoped());
    CHECK(alive == 0);
}

#if defined(ZKASIO_TEST_COUNTS_NEW)

namespace {
asio::awaitable<void> until_fired(asio::steady_timer& timer) {
    std::error_code code;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, code));
}
}  // namespace

// What a task has besides: the frame of run_task(), which resets the cancellation state (Asio allocates that anew), and
// its node.
TEST_CASE("task scope: a task costs three allocations more than co_spawn with a cancellation slot at most",
          "[task_scope]") {
    constexpr int n = 1000;
    constexpr long besides = 3 * n;
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        asio::steady_timer fired(executor, asio::steady_timer::time_point::max());
        std::deque<asio::cancellation_signal> signals(n);
        long before = news;
        for (auto& s : signals)
            asio::co_spawn(executor, until_fired(fired), asio::bind_cancellation_slot(s.slot(), asio::detached));
        const long bare = news - before;
        fired.cancel();
        co_await settle();

        long in_a_scope = 0;
        co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
            long earlier = news;
            for (int i = 0; i < n; ++i) tasks.spawn(until_fired(fired));
            in_a_scope = news - earlier;
            fired.cancel();
            co_return;
        });
        CHECK(bare >= 3 * n);
        CHECK(in_a_scope <= bare + besides);
    };
    asio::co_spawn(asio::make_strand(loop.executor()), steps(), asio::detached);
    loop.run();
}

TEST_CASE("task scope: what has ended keeps no memory while others run", "[task_scope]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        gate open(loop.executor());
        co_await with_task_scope([&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(open.wait());
            const auto round = [&]() -> asio::awaitable<void> {
                for (int i = 0; i < 100; ++i) tasks.spawn(settle());
                while (tasks.size() > 1) co_await settle();
            };
            co_await round();
            co_await round();
            const long before = news - deletes;
            for (int i = 0; i < 20; ++i) co_await round();
            CHECK(news - deletes - before < 20);  // 2000 tasks; Asio keeps a few blocks of memory for the next one
            open.open();
        });
    };
    loop.run(steps());
}

#endif
