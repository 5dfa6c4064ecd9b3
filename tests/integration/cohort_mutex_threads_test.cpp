// What ThreadSanitizer is to look at: one cohort of coroutines on several threads, which are cancelled from others.

#include "support/test_client.hpp"

#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cohort_mutex_threads_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

void run_on_threads(asio::io_context& io, int threads) {
    std::vector<std::thread> pool;
    for (int i = 0; i < threads; ++i) pool.emplace_back([&] { io.run(); });
    for (std::thread& t : pool) t.join();
}

// Closes the clients after the last task.
struct crew {
    crew(client a, client b) : one(std::move(a)), two(std::move(b)) {}
    void done(std::exception_ptr e) {
        if (e) ++failed;
        if (--left > 0) return;
        for (const client& zk : {one, two})
            asio::co_spawn(zk.get_executor(), zk.close(), [](std::exception_ptr, close_result) {});
    }
    client one, two;
    std::atomic<int> left{0}, failed{0};
};

}  // namespace

TEST_CASE("cohort_mutex: two cohorts and a mutex on four threads, a strand for each coroutine", "[real-threads]") {
    asio::io_context io;
    crew all{client(io.get_executor(), options()), client(io.get_executor(), options())};
    const std::string path = "/test-cohort-threads";
    const auto how = cohort_mutex_options().turns(5).linger(1ms);
    const cohort_mutex ours(all.one, path, how), theirs(all.two, path, how);
    const mutex plain(all.two, path);
    std::atomic<int> inside{0}, acquired{0};
    fencing_token last;  // guarded by the lock
    auto task = [&](int me) -> asio::awaitable<void> {
        const lockable& lock = me % 7 == 0 ? static_cast<const lockable&>(plain) : me % 2 ? ours : theirs;
        for (int i = 0; i < 30; ++i) {
            std::optional<lock_guard> guard = co_await lock.acquire();
            if (++inside != 1) throw std::runtime_error("two holders");
            if (guard->token() <= last) throw std::runtime_error("a token has not risen");
            last = guard->token();
            ++acquired;
            if (!guard->held()) throw std::runtime_error("not held");
            if (me % 3 == 0) co_await asio::post(asio::use_awaitable);
            --inside;
            if (me % 4 == 1) co_await guard->release();
            guard.reset();
            if (me % 5 == 0) {
                auto body = [&](lock_guard& held) -> asio::awaitable<void> {
                    if (++inside != 1) throw std::runtime_error("two holders");
                    last = held.token();
                    --inside;
                    co_return;
                };
                co_await lock.with_lock(body);
            }
        }
    };
    constexpr int tasks = 24;
    all.left = tasks;
    for (int i = 0; i < tasks; ++i)
        asio::co_spawn(asio::make_strand(io), task(i), [&](std::exception_ptr e) { all.done(e); });
    run_on_threads(io, 4);
    CHECK(all.failed == 0);
    CHECK(acquired == tasks * 30);
}

TEST_CASE("cohort_mutex: waits are cancelled from other threads, at any moment", "[real-threads]") {
    asio::io_context io;
    crew all{client(io.get_executor(), options()), client(io.get_executor(), options())};
    const std::string path = "/test-cohort-threads-cancel";
    const auto how = cohort_mutex_options().turns(3).linger(0s);
    const cohort_mutex ours(all.one, path, how), theirs(all.two, path, how);
    constexpr int tasks = 80;
    all.left = tasks;
    std::atomic<int> cancelled{0}, got{0}, inside{0};
    struct attempt {
        explicit attempt(asio::io_context& c) : strand(asio::make_strand(c)) {}
        asio::strand<asio::io_context::executor_type> strand;
        asio::cancellation_signal signal;  // used on the strand only
    };
    struct leaves {
        std::atomic<int>& inside;
        ~leaves() { --inside; }
    };
    std::vector<std::unique_ptr<attempt>> attempts;
    auto task = [&](int me) -> asio::awaitable<void> {
        const cohort_mutex& lock = me % 2 ? ours : theirs;
        try {
            const lock_guard guard = co_await lock.acquire();
            if (++inside != 1) throw std::runtime_error("two holders");
            const leaves l{inside};  // also when the try is cancelled
            const auto none = co_await lock.try_acquire();
            if (none) throw std::runtime_error("two holders");
            ++got;
        } catch (const std::system_error& e) {
            if (e.code() != condition::cancelled) throw;
            ++cancelled;
        }
    };
    for (int i = 0; i < tasks; ++i) {
        attempts.push_back(std::make_unique<attempt>(io));
        attempt& a = *attempts.back();
        asio::post(a.strand, [&, i] {
            asio::co_spawn(a.strand, task(i),
                           asio::bind_cancellation_slot(a.signal.slot(), [&](std::exception_ptr e) { all.done(e); }));
        });
    }
    std::thread canceller([&] {
        for (int i = 0; i < tasks; i += 3) {
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
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto empty = [&]() -> asio::awaitable<bool> {
            const auto there = co_await zk.exists(path);
            co_return !there || there->num_children == 0;
        };
        co_await eventually(empty);
    };
    with_client(body);
}

}  // namespace cohort_mutex_threads_tests
