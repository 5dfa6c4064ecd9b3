#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <asio/detached.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <future>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using asio::cancellation_type;

namespace {

// What must not get lost: counts how many there are.
class precious {
public:
    explicit precious(int& alive) : alive_(&alive) { ++alive; }
    precious(precious&& other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
    ~precious() {
        if (alive_) --*alive_;
    }
    precious& operator=(precious&&) = delete;

private:
    int* alive_;
};

// Is cancelled, and has a result all the same: as an operation whose answer arrives in the turn in which the limit
// passes.
asio::awaitable<precious> granted_when_cancelled(int& alive, cancellation_type& seen) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    std::error_code code;
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
    seen = (co_await asio::this_coro::cancellation_state).cancelled();
    co_return precious(alive);
}

// Uses up the time until `end`, so that the result and the limit are there in the same turn.
asio::awaitable<precious> granted_in_the_turn_of(boot_clock::time_point end, int& alive) {
    while (boot_clock::now() <= end + 1ms) {
    }
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    co_return precious(alive);
}

asio::awaitable<int> answer(int n) {
    co_await settle();
    co_return n;
}

asio::awaitable<void> sent_write() {
    std::error_code code;
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
    throw error(code, "set", "/a", {}, true);
}

asio::awaitable<void> fails_when_cancelled() {
    std::error_code code;
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
    throw std::runtime_error("mine");
}

}  // namespace

TEST_CASE("timeout: what ends in time is passed on", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        const int number = co_await timeout(1h, answer(7));
        CHECK(number == 7);
        const int at = co_await timeout(boot_clock::now() + 1h, answer(8));
        CHECK(at == 8);
        const int never = co_await timeout(boot_clock::time_point::max(), answer(9));
        CHECK(never == 9);
        const int longest = co_await timeout(std::chrono::nanoseconds::max(), answer(10));
        CHECK(longest == 10);
        co_await timeout(1h, settle());
        co_await expect_message(timeout(1h, fail_with("mine")), "mine");
    };
    loop.run(steps());  // runs dry: no timer is left
}

TEST_CASE("timeout: at the limit the operation is cancelled and awaited", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        cancellation_type seen{};
        co_await expect_message(timeout(1ms, until_cancelled_by(seen)), "timeout: timed out");
        CHECK(seen == cancellation_type::terminal);

        gate slow(loop.executor());
        bool ended = false;
        auto limited = [&]() -> asio::awaitable<void> { co_await timeout(0ms, reluctantly(slow, ended)); };
        running task(loop.executor(), limited());
        co_await settle();
        CHECK_FALSE(task.ended());
        slow.open();
        const std::exception_ptr e = co_await task.end();
        CHECK(ended);
        CHECK_FALSE(e);  // it has ended by itself
    };
    loop.run(steps());
}

TEST_CASE("timeout: limits of zero and in the past begin the operation and negative ones do not", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        int begun = 0;
        auto counted = [&]() -> asio::awaitable<void> {
            ++begun;
            co_await forever();
        };
        auto at_once = [&]() -> asio::awaitable<int> {
            ++begun;
            co_return begun;
        };
        co_await expect_code(timeout(0s, counted()), errc::timed_out);
        for (const auto past : {boot_clock::time_point::min(), boot_clock::time_point(), boot_clock::now() - 1s})
            co_await expect_code(timeout(past, counted()), errc::timed_out);
        CHECK(begun == 4);
        const int without_waiting = co_await timeout(0s, at_once());
        CHECK(without_waiting == 5);
        co_await expect_message(timeout(-1ns, counted()), "timeout: invalid argument (a time limit is not negative)");
        auto gone = forever();
        const auto taken = std::move(gone);
        co_await expect_message(timeout(1h, std::move(gone)), "timeout: invalid argument (the operation is empty)");
        CHECK(begun == 5);
    };
    loop.run(steps());
}

TEST_CASE("timeout: a limit counts from the moment in which it is awaited", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        auto later = timeout(300ms, answer(7));
        const auto over = boot_clock::now() + 310ms;
        while (boot_clock::now() < over) {
        }
        const int number = co_await std::move(later);
        CHECK(number == 7);
    };
    loop.run(steps());
}

TEST_CASE("timeout: a result that comes with the limit is not lost", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        int alive = 0;
        {
            cancellation_type seen{};
            const precious kept = co_await timeout(1ms, granted_when_cancelled(alive, seen));
            CHECK(alive == 1);
            CHECK(seen == cancellation_type::terminal);
        }
        CHECK(alive == 0);
        for (int i = 0; i < 10; ++i) {
            const auto end = boot_clock::now() + 1ms;
            const precious kept = co_await timeout(end, granted_in_the_turn_of(end, alive));
            CHECK(alive == 1);
        }
        CHECK(alive == 0);
    };
    loop.run(steps());
}

TEST_CASE("timeout: the error names the operation and tells of an unknown outcome", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        const result<void> r = co_await as_result(timeout(1ms, sent_write()));
        REQUIRE_FALSE(r);
        CHECK(r.error().code() == errc::timed_out);
        CHECK(r.error().code() != condition::cancelled);
        CHECK(r.error().code() != condition::retryable);
        CHECK(r.error().outcome_unknown());
        CHECK(r.error().path() == "/a");
        CHECK(r.error().what() == std::string("set /a: timed out; it may or may not have been applied"));
        co_await expect_message(timeout(1ms, fails_when_cancelled()), "mine");
    };
    loop.run(steps());
}

TEST_CASE("timeout: the cancellation of the caller reaches the operation as it is", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        for (const auto how : {cancellation_type::terminal, cancellation_type::partial, cancellation_type::total}) {
            cancellation_type seen{};
            auto limited = [&]() -> asio::awaitable<void> {
                co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
                co_await timeout(1h, until_cancelled_by(seen));
            };
            running task(loop.executor(), limited());
            co_await settle();
            task.cancel(how);
            const std::error_code code = co_await task.code();
            CHECK(code == asio::error::operation_aborted);
            CHECK(seen == how);
        }
    };
    loop.run(steps());
}

TEST_CASE("timeout: a caller who cancels before the limit is not told of the limit", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        for (const bool deadline_too : {false, true}) {
            const auto end = boot_clock::now() + 200ms;
            auto slow = [&]() -> asio::awaitable<void> {
                std::exception_ptr cancelled;
                try {
                    co_await forever();
                } catch (...) {
                    cancelled = std::current_exception();
                }
                while (boot_clock::now() < end + 1ms) {
                }
                co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                co_await settle();  // the limit passes here
                std::rethrow_exception(cancelled);
            };
            auto limited = [&]() -> asio::awaitable<void> {
                if (deadline_too)
                    co_await run_with_deadline(end, slow);
                else
                    co_await timeout(end, slow());
            };
            running task(loop.executor(), limited());
            co_await settle();
            task.cancel();
            const std::error_code code = co_await task.code();
            CHECK(code == asio::error::operation_aborted);
        }
    };
    loop.run(steps());
}

TEST_CASE("timeout: nested limits", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        co_await expect_code(timeout(1ms, timeout(1h, forever())), errc::timed_out);
        co_await expect_code(timeout(1h, timeout(1ms, forever())), errc::timed_out);
        const result<result<int>> twice = co_await as_result(timeout(1h, as_result(timeout(1h, answer(5)))));
        CHECK(**twice == 5);
    };
    loop.run(steps());
}

TEST_CASE("timeout: it stays on the strand of the caller and works without one", "[timeout]") {
    asio::thread_pool threads(4);
    const auto strand = asio::make_strand(asio::any_io_executor(threads.get_executor()));
    auto where = []() -> asio::awaitable<asio::any_io_executor> {
        co_await settle();
        co_return co_await asio::this_coro::executor;
    };
    const auto there = asio::co_spawn(strand, timeout(1h, where()), asio::use_future).get();
    CHECK(there == asio::any_io_executor(strand));
    std::vector<std::future<result<int>>> results;
    for (int i = 0; i < 100; ++i)
        results.push_back(asio::co_spawn(threads, as_result(timeout(std::chrono::microseconds(i * 10), answer(i))),
                                         asio::use_future));
    for (int i = 0; i < 100; ++i) {
        const result<int> r = results[static_cast<std::size_t>(i)].get();
        CHECK((r ? *r == i : r.error().code() == errc::timed_out));
    }
    threads.join();
}

TEST_CASE("timeout: a loop that is destroyed meanwhile leaks nothing", "[timeout]") {
    int alive = 0;
    cancellation_type seen{};
    {
        asio::io_context io;
        asio::co_spawn(io, as_result(timeout(1h, granted_when_cancelled(alive, seen))), asio::detached);
        while (io.poll_one() > 0) {
        }
    }
    CHECK(alive == 0);
}

TEST_CASE("timeout: a request that is cancelled at the limit leaves nothing under way", "[timeout]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        for (int i = 0; i < 20; ++i) {
            const auto read = co_await as_result(timeout(std::chrono::microseconds(i * 20), zk.get_and_watch("/a")));
            if (!read) CHECK(read.error().code() == errc::timed_out);
        }
    };
    r.run(body);
}
