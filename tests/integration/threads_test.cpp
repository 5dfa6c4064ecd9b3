// What ThreadSanitizer is to look at: one io_context on several threads, several clients on several threads, and
// cancellation from other threads.

#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <future>
#include <thread>

using namespace zkasio;
using namespace zkasio::test;

namespace {

void run_on_threads(asio::io_context& io, int threads) {
    std::vector<std::thread> pool;
    for (int i = 0; i < threads; ++i) pool.emplace_back([&] { io.run(); });
    for (std::thread& t : pool) t.join();
}

// Counts its tasks and closes the client after the last.
struct crew {
    explicit crew(client c) : zk(std::move(c)) {}
    void done(std::exception_ptr e) {
        if (e) ++failed;
        if (--left == 0) asio::co_spawn(zk.get_executor(), zk.close(), [](std::exception_ptr, close_result) {});
    }
    client zk;
    std::atomic<int> left{0}, failed{0};
};

}  // namespace

TEST_CASE("one io_context on four threads, a strand for each coroutine", "[real-threads]") {
    asio::io_context io;
    crew all{client(io.get_executor(), options())};
    const mutex lock(all.zk, "/test-threads-strands");
    std::atomic<int> inside{0}, acquired{0};
    auto task = [&](int me) -> asio::awaitable<void> {
        for (int i = 0; i < 15; ++i) {
            lock_guard guard = co_await lock.acquire();
            if (++inside != 1) throw std::runtime_error("two holders");
            ++acquired;
            const node_data read = co_await all.zk.get("/");
            if (!guard.held()) throw std::runtime_error("not held");
            --inside;
            if (me % 2) co_await guard.release();
        }
    };
    constexpr int tasks = 12;
    all.left = tasks;
    for (int i = 0; i < tasks; ++i)
        asio::co_spawn(asio::make_strand(io), task(i), [&](std::exception_ptr e) { all.done(e); });
    run_on_threads(io, 4);
    CHECK(all.failed == 0);
    CHECK(acquired == tasks * 15);
}

TEST_CASE("operations may be awaited from a foreign context, and are resumed there", "[real-threads]") {
    asio::io_context io;
    asio::thread_pool elsewhere(2);
    crew all{client(io.get_executor(), options())};
    std::atomic<int> wrong_context{0};
    auto task = [&]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i < 50; ++i) {
            co_await all.zk.exists("/");
            const auto strand = executor.target<asio::strand<asio::thread_pool::executor_type>>();
            if (!strand || !strand->running_in_this_thread()) ++wrong_context;
        }
    };
    constexpr int tasks = 8;
    all.left = tasks;
    for (int i = 0; i < tasks; ++i)
        asio::co_spawn(asio::make_strand(elsewhere.get_executor()), task(), [&](std::exception_ptr e) { all.done(e); });
    run_on_threads(io, 2);
    elsewhere.join();
    CHECK(all.failed == 0);
    CHECK(wrong_context == 0);
}

TEST_CASE("several clients on several threads", "[real-threads]") {
    std::vector<std::thread> threads;
    std::atomic<int> failed{0}, total{0};
    std::atomic<bool> inside{false};
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            asio::io_context io;
            const client zk(io.get_executor(), options());
            auto task = [&]() -> asio::awaitable<void> {
                const mutex lock(zk, "/test-threads-clients");
                for (int n = 0; n < 25; ++n) {
                    lock_guard guard = co_await lock.acquire();
                    if (inside.exchange(true)) ++failed;
                    ++total;
                    inside = false;
                    co_await guard.release();
                    co_await zk.exists("/test-" + std::to_string(i));
                }
                co_await zk.close();
            };
            asio::co_spawn(io, task(), [&](std::exception_ptr e) {
                if (e) ++failed;
            });
            io.run();
        });
    for (std::thread& t : threads) t.join();
    CHECK(failed == 0);
    CHECK(total == 100);
}

TEST_CASE("waits are cancelled from other threads, at any moment", "[real-threads]") {
    asio::io_context io;
    crew all{client(io.get_executor(), options())};
    const mutex lock(all.zk, "/test-threads-cancel");
    constexpr int tasks = 60;
    all.left = tasks;
    std::atomic<int> cancelled{0}, got{0};
    struct attempt {
        explicit attempt(asio::io_context& c) : strand(asio::make_strand(c)) {}
        asio::strand<asio::io_context::executor_type> strand;
        asio::cancellation_signal signal;  // used on the strand only
    };
    std::vector<std::unique_ptr<attempt>> attempts;
    auto task = [&]() -> asio::awaitable<void> {
        try {
            const lock_guard guard = co_await lock.acquire();
            const auto limited = co_await lock.try_acquire_for(1ms);
            ++got;
        } catch (const std::system_error& e) {
            if (e.code() != condition::cancelled) throw;
            ++cancelled;
        }
    };
    for (int i = 0; i < tasks; ++i) {
        attempts.push_back(std::make_unique<attempt>(io));
        attempt& a = *attempts.back();
        asio::post(a.strand, [&] {
            asio::co_spawn(a.strand, task(),
                           asio::bind_cancellation_slot(a.signal.slot(), [&](std::exception_ptr e) { all.done(e); }));
        });
    }
    std::thread canceller([&] {
        for (int i = 0; i < tasks; i += 2) {
            attempt& a = *attempts[static_cast<std::size_t>(i)];
            asio::post(a.strand, [&a] { a.signal.emit(asio::cancellation_type::terminal); });
            std::this_thread::yield();
        }
    });
    run_on_threads(io, 3);
    canceller.join();
    CHECK(all.failed == 0);
    CHECK(got + cancelled == tasks);
    CHECK(got >= tasks / 2);
    // Nobody was left behind in the queue.
    auto body = [](client zk) -> asio::awaitable<void> {
        auto empty = [&]() -> asio::awaitable<bool> {
            const auto there = co_await zk.exists("/test-threads-cancel");
            co_return !there || there->num_children == 0;
        };
        co_await eventually(empty);
    };
    with_client(body);
}

// What the observer refers to is often on the stack of who acquires.
TEST_CASE("an acquire that is cancelled does not end while another thread is in its observer", "[real-threads]") {
    asio::io_context io, mine;
    auto working = asio::make_work_guard(io);
    const client zk(io.get_executor(), options());
    const mutex lock(zk, "/test-threads-observer");
    std::promise<lock_guard> first;
    std::promise<void> behind_two, told_again, cancelled;
    std::atomic<bool> ended{false}, late{false};
    std::thread clients_thread([&] { io.run(); });

    const auto spawn = [](auto& context, asio::awaitable<void> task, asio::cancellation_signal& signal, auto done) {
        asio::co_spawn(context, std::move(task),
                       asio::bind_cancellation_slot(signal.slot(), [done](std::exception_ptr) { done(); }));
    };
    asio::cancellation_signal stop_next, stop;
    auto hold = [&]() -> asio::awaitable<void> { first.set_value(co_await lock.acquire()); };
    auto wait = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
    auto ahead = [&]() -> asio::awaitable<void> {
        co_await hold();
        co_await wait();
    };
    spawn(io, ahead(), stop_next, [] {});
    const lock_guard holder = first.get_future().get();

    acquire_options how;
    how.on_position([&](const queue_position& where) {
        if (where.ahead == 2) behind_two.set_value();
        if (where.ahead != 1) return;
        told_again.set_value();
        for (const auto enough = boot_clock::now() + 100ms; !ended && boot_clock::now() < enough;)
            std::this_thread::yield();
        late = ended.load();
    });
    auto observed = [&]() -> asio::awaitable<void> {
        const auto there = [&]() -> asio::awaitable<bool> {
            const auto stat = co_await zk.exists(lock.path());
            co_return stat && stat->num_children == 2;
        };
        co_await eventually(there);
        (void)co_await lock.acquire(how);
    };
    spawn(mine, observed(), stop, [&] { ended = true; });
    auto queued = behind_two.get_future();
    while (queued.wait_for(0s) != std::future_status::ready) {
        mine.restart();
        mine.run_for(1ms);
    }
    // The client knows that nobody waits any more, who waited does not yet.
    stop.emit(asio::cancellation_type::terminal);
    asio::post(zk.get_executor(), [&] { cancelled.set_value(); });
    cancelled.get_future().wait();
    asio::post(io, [&] { stop_next.emit(asio::cancellation_type::terminal); });
    told_again.get_future().wait();
    mine.restart();
    mine.run();
    CHECK(ended);

    auto finish = [&]() -> asio::awaitable<void> { co_await zk.close(); };
    asio::co_spawn(io, finish(), asio::use_future).get();
    working.reset();
    clients_thread.join();
    CHECK_FALSE(late);
}

TEST_CASE("bodies of with_lock run on a strand even where the caller has none", "[real-threads]") {
    asio::io_context io;
    crew all{client(io.get_executor(), options())};
    const mutex lock(all.zk, "/test-threads-bodies");
    std::atomic<int> inside{0}, runs{0};
    auto task = [&]() -> asio::awaitable<void> {
        auto body = [&](lock_guard& guard) -> asio::awaitable<void> {
            if (++inside != 1) throw std::runtime_error("two holders");
            co_await all.zk.exists("/");
            if (!guard.held()) throw std::runtime_error("not held");
            --inside;
            ++runs;
        };
        for (int i = 0; i < 5; ++i) co_await lock.with_lock(body);
    };
    constexpr int tasks = 8;
    all.left = tasks;
    for (int i = 0; i < tasks; ++i) asio::co_spawn(io, task(), [&](std::exception_ptr e) { all.done(e); });
    run_on_threads(io, 4);
    CHECK(all.failed == 0);
    CHECK(runs == tasks * 5);
}
