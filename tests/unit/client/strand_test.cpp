// The strand of a client: what asio::strand promises.
#include "support/catch.hpp"

#include <zkasio/detail/base/strand.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/require.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strand_tests {

using namespace std::chrono_literals;
using zkasio::detail::strand_type;
using numbers = std::vector<int>;

TEST_CASE("strand: functions run in the order in which they were posted, those of a turn one after another") {
    asio::io_context io;
    const strand_type on(asio::any_io_executor(io.get_executor()));
    numbers seen;
    asio::post(on, [&] {
        CHECK(on.running_in_this_thread());
        asio::post(on, [&] { seen.push_back(4); });      // a later turn
        asio::dispatch(on, [&] { seen.push_back(1); });  // at once
        seen.push_back(2);
    });
    asio::post(on, [&] { seen.push_back(3); });
    CHECK_FALSE(on.running_in_this_thread());
    io.run();
    CHECK(seen == numbers{1, 2, 3, 4});
}

TEST_CASE("strand: a function is run at once in a thread of the context, and otherwise never") {
    asio::io_context io;
    const strand_type on(asio::any_io_executor(io.get_executor())), other(asio::any_io_executor(io.get_executor()));
    numbers seen;
    asio::dispatch(on, [&] { seen.push_back(1); });
    CHECK(seen.empty());
    io.run();
    asio::post(io, [&] {
        asio::dispatch(on, [&] {
            asio::dispatch(other, [&] {
                CHECK(on.running_in_this_thread());
                CHECK(other.running_in_this_thread());
                asio::dispatch(on, [&] { seen.push_back(2); });
                seen.push_back(3);
            });
            CHECK_FALSE(other.running_in_this_thread());
            asio::post(on, [&] { seen.push_back(5); });
            seen.push_back(4);
        });
        CHECK_FALSE(on.running_in_this_thread());
    });
    io.restart();
    io.run();
    CHECK(seen == numbers{1, 2, 3, 4, 5});
}

TEST_CASE("strand: one turn at a time, on any number of threads, over each kind of executor") {
    asio::thread_pool pool(4);
    asio::io_context io;
    const std::vector<asio::any_io_executor> kinds{pool.get_executor(), io.get_executor(), asio::make_strand(pool),
                                                   strand_type(asio::any_io_executor(io.get_executor()))};
    const asio::any_io_executor over = kinds[GENERATE(0U, 1U, 2U, 3U)];
    const strand_type on(over);
    std::optional<asio::executor_work_guard<strand_type>> work(on);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { io.run(); });
    int inside = 0, count = 0;
    bool alone = true;
    std::vector<int> last(4, -1);
    bool in_order = true;
    std::vector<std::thread> users;
    std::atomic<int> left{4};
    for (int user = 0; user < 4; ++user)
        users.emplace_back([&, user] {
            for (int i = 0; i < 5000; ++i) {
                auto one = [&, user, i] {
                    alone = alone && ++inside == 1;
                    in_order = in_order && std::exchange(last[static_cast<std::size_t>(user)], i) == i - 1;
                    ++count;
                    --inside;
                };
                if (i % 3 == 0)
                    asio::dispatch(on, std::move(one));
                else
                    asio::post(on, std::move(one));
            }
            if (--left == 0) asio::post(on, [&] { work.reset(); });
        });
    for (std::thread& t : users) t.join();
    for (std::thread& t : threads) t.join();
    pool.join();
    CHECK(count == 20'000);
    CHECK(alone);
    CHECK(in_order);
}

TEST_CASE("strand: an exception leaves run(), and the others have their turn") {
    asio::io_context io;
    const strand_type on(asio::any_io_executor(io.get_executor()));
    numbers seen;
    asio::post(on, [&] {
        asio::post(on, [&] { seen.push_back(3); });
        seen.push_back(1);
    });
    asio::post(on, [] { throw std::runtime_error("of a function"); });
    asio::post(on, [&] { seen.push_back(2); });
    CHECK_THROWS_AS(io.run(), std::runtime_error);
    CHECK(seen == numbers{1});
    CHECK_FALSE(on.running_in_this_thread());
    io.run();
    CHECK(seen == numbers{1, 2, 3});
    asio::post(io, [&] {
        asio::dispatch(on, [] { throw std::runtime_error("at once"); });
        seen.push_back(4);  // as with asio::strand
        asio::dispatch(on, [&] {
            CHECK_THROWS_AS(asio::dispatch(on, [] { throw std::runtime_error("within the turn"); }),
                            std::runtime_error);
            seen.push_back(5);
        });
    });
    io.restart();
    CHECK_THROWS_AS(io.run(), std::runtime_error);
    asio::post(on, [&] { seen.push_back(6); });
    io.restart();
    io.run();
    CHECK(seen == numbers{1, 2, 3, 4, 5, 6});

    // What waits behind an exception alone, and what comes then.
    for (const int before : {0, 1}) {
        asio::post(on, [] { throw std::runtime_error("first"); });
        for (int i = 0; i < before; ++i) asio::post(on, [&] { seen.push_back(7); });
        io.restart();
        CHECK_THROWS_AS(io.run(), std::runtime_error);
        asio::post(on, [&] { seen.push_back(8); });
        asio::post(on, [&] { seen.push_back(9); });
        io.restart();
        io.run();
    }
    CHECK(seen == numbers{1, 2, 3, 4, 5, 6, 8, 9, 7, 8, 9});
}

asio::any_io_executor posting(const asio::any_io_executor& e) {
    return asio::prefer(asio::require(e, asio::execution::blocking.never), asio::execution::outstanding_work.tracked);
}

TEST_CASE("strand: one function of a turn runs behind it, on the same thread, and not in the strand") {
    asio::io_context io;
    const strand_type on(asio::any_io_executor(io.get_executor()));
    const bool is_dispatched = GENERATE(false, true);
    numbers seen;
    const auto give = [&](const asio::any_io_executor& e, int n) {
        strand_type::post_or_run_behind(posting(e), [&seen, &on, n] {
            CHECK_FALSE(on.running_in_this_thread());
            seen.push_back(n);
        });
    };
    const auto turn = [&] {
        on.let_one_run_behind();
        give(io.get_executor(), 2);
        give(io.get_executor(), 4);
        seen.push_back(1);
    };
    asio::post(io, [&] {
        asio::post(io, [&] { seen.push_back(3); });
        is_dispatched ? asio::dispatch(on, turn) : asio::post(on, turn);
    });
    io.run();
    // A turn that was posted is itself behind the 3.
    CHECK(seen == (is_dispatched ? numbers{1, 2, 3, 4} : numbers{3, 1, 2, 4}));
}

TEST_CASE("strand: nothing runs behind a turn that does not say so, and nothing of another executor") {
    asio::io_context io, another;
    asio::thread_pool pool(1);
    const strand_type on(asio::any_io_executor(io.get_executor()));
    const auto kind = GENERATE(0, 1, 2, 3);
    const asio::any_io_executor to = kind == 0   ? asio::any_io_executor(io.get_executor())
                                     : kind == 1 ? asio::any_io_executor(asio::make_strand(io))
                                     : kind == 2 ? asio::any_io_executor(another.get_executor())
                                                 : asio::any_io_executor(on);
    numbers seen;
    asio::post(on, [&] {
        if (kind != 0) on.let_one_run_behind();
        strand_type::post_or_run_behind(posting(to), [&] { seen.push_back(2); });
        asio::dispatch(on, [] {});
    });
    asio::post(io, [&] { seen.push_back(1); });
    io.run();
    another.run();
    CHECK(seen == numbers{1, 2});
}

TEST_CASE("strand: what runs behind a turn is not lost with an exception, and may throw one") {
    asio::io_context io;
    const strand_type on(asio::any_io_executor(io.get_executor()));
    const bool is_dispatched = GENERATE(false, true);
    numbers seen;
    const auto failing = [&] {
        on.let_one_run_behind();
        strand_type::post_or_run_behind(posting(io.get_executor()), [&] {
            seen.push_back(1);
            throw std::runtime_error("behind the turn");
        });
        asio::post(on, [&] { seen.push_back(2); });
        throw std::runtime_error("in the turn");
    };
    asio::post(io, [&] { is_dispatched ? asio::dispatch(on, failing) : asio::post(on, failing); });
    std::vector<std::string> thrown;
    for (int i = 0; i < 3; ++i) {
        try {
            io.restart();
            io.run();
        } catch (const std::runtime_error& e) {
            thrown.emplace_back(e.what());
        }
    }
    // An exception that leaves the turn leaves the function for later.
    CHECK(seen == (is_dispatched ? numbers{1, 2} : numbers{2, 1}));
    std::sort(thrown.begin(), thrown.end());
    CHECK(thrown == std::vector<std::string>{"behind the turn", "in the turn"});
}

TEST_CASE("strand: with its context, what waits is destroyed and never runs") {
    const bool is_told = GENERATE(false, true);
    const auto alive = std::make_shared<int>();
    std::optional<strand_type> on;
    {
        asio::io_context io;
        on.emplace(asio::any_io_executor(io.get_executor()));
        // Each keeps the strand.
        for (int i = 0; i < 3; ++i) asio::post(*on, [kept = *on, alive] { FAIL("has run"); });
        if (is_told) on->end();
    }
    CHECK(alive.use_count() == 1);
    asio::io_context other;  // in whose thread it would be run at once, if this were its own
    asio::post(other, [&] { asio::dispatch(*on, [alive] { FAIL("has run"); }); });
    other.run();
    asio::post(*on, [alive] { FAIL("has run"); });
    CHECK(alive.use_count() == 1);
    asio::dispatch(*on, [alive] { FAIL("has run"); });
    CHECK(alive.use_count() == 1);
}

TEST_CASE("strand: a function may be the last that needs it") {
    asio::io_context io;
    std::optional<strand_type> on(asio::any_io_executor(io.get_executor()));
    numbers seen;
    asio::post(io, [&] {
        asio::dispatch(*on, [&] {
            on.reset();
            seen.push_back(1);
        });
    });
    io.run();
    CHECK(seen == numbers{1});
}

TEST_CASE("strand: outstanding work keeps run() from returning") {
    asio::io_context io;
    const strand_type on(asio::any_io_executor(io.get_executor()));
    bool done = false;
    {
        std::optional<asio::executor_work_guard<asio::any_io_executor>> one(asio::any_io_executor{on}), two(one);
        one.reset();
        CHECK(io.poll() == 0);
        CHECK_FALSE(io.stopped());
        asio::post(on, [&] {
            done = true;
            two.reset();
        });
        io.run();
    }
    CHECK(done);
    CHECK(io.stopped());
    // Of what is assigned, the work goes along.
    {
        io.restart();
        const strand_type other(asio::any_io_executor(io.get_executor()));
        strand_type tracked = asio::require(on, asio::execution::outstanding_work.tracked), plain = other;
        CHECK(asio::query(tracked, asio::execution::outstanding_work) == asio::execution::outstanding_work.tracked);
        plain = tracked;
        tracked = other;
        CHECK(asio::query(tracked, asio::execution::outstanding_work) == asio::execution::outstanding_work.untracked);
        CHECK(plain == on);
        CHECK(plain != other);
        io.poll();
        CHECK_FALSE(io.stopped());
        plain = other;
        io.poll();
        CHECK(io.stopped());
        const strand_type never = asio::require(on, asio::execution::blocking.never);
        CHECK(asio::query(never, asio::execution::blocking) == asio::execution::blocking.never);
        CHECK(asio::query(on, asio::execution::blocking) == asio::execution::blocking.possibly);
        CHECK(never == on);
    }

    // Coroutines, and Asio's own objects, live on it.
    auto sleep = [&]() -> asio::awaitable<int> {
        const asio::any_io_executor here = co_await asio::this_coro::executor;
        CHECK(here == asio::any_io_executor(on));
        asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                                   strand_type>
            timer(on, 1ms);
        co_await timer.async_wait(asio::use_awaitable);
        CHECK(on.running_in_this_thread());
        co_return 7;
    };
    io.restart();
    std::future<int> result = asio::co_spawn(on, sleep, asio::use_future);
    io.run();
    CHECK(result.get() == 7);
}

}  // namespace strand_tests
