// What users give to be called back: observers of a queue and log sinks. Nothing of zkasio, and nothing of its C
// library, may be in the middle of something then.

#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>

#include <algorithm>
#include <future>
#include <thread>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// A client, and a lock that it takes: made in a callback, used later.
struct made_in_callback {
    void make(const asio::any_io_executor& executor, const std::string& path) {
        if (std::exchange(done, true)) return;
        zk.emplace(executor, options());
        lock.emplace(*zk, path);
    }
    asio::awaitable<void> use() {
        auto made = [&]() -> asio::awaitable<bool> { co_return zk.has_value(); };
        co_await eventually(made);
        lock_guard guard = co_await lock->acquire();
        co_await guard.release();
        co_await zk->close();
        lock.reset();  // the loop goes before this object does
        zk.reset();
    }
    std::optional<test_client> zk;
    std::optional<mutex> lock;
    bool done = false;
};

}  // namespace

TEST_CASE("callbacks: an observer may make a client and a lock") {
    made_in_callback made;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "callbacks-observer");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir + "/lock");
        lock_guard holder = co_await lock.acquire();
        acquire_options how;
        how.on_position([&](const queue_position&) { made.make(executor, dir + "/other"); });
        taker waiter(executor, lock.acquire(how));
        co_await made.use();
        co_await holder.release();
        co_await waiter.got();
        waiter.release();
    };
    with_client(body);
}

TEST_CASE("callbacks: a log sink may make a client and a lock", "[real-names]") {
    made_in_callback made;
    asio::any_io_executor executor;
    // Before each connection that succeeds stands one that is refused, of which the C library tells in the middle of
    // its work.
    const std::string servers = "127.0.0.1:" + std::to_string(free_port()) + "," + first_server();
    auto sink = [&](std::string_view line) {
        if (line.find("refused") != line.npos) made.make(executor, "/test-callbacks-sink/lock");
    };
    auto body = [&](client) -> asio::awaitable<void> {
        executor = co_await asio::this_coro::executor;
        // Which of the two is tried first is a matter of chance.
        while (!made.done) {
            const test_client unlucky(executor, options(servers).log(sink));
            co_await unlucky.connected();
            co_await unlucky.close();
        }
        co_await made.use();
    };
    with_client(body);
}

TEST_CASE("callbacks: a slow observer does not hold up another client on another thread", "[real-threads]") {
    std::promise<void> observing;
    std::atomic<bool> other_done{false};
    bool in_time = false;
    std::thread other([&] {
        observing.get_future().wait();
        auto body = [](client zk) -> asio::awaitable<void> {
            for (int i = 0; i < 20; ++i) co_await zk.get("/");
        };
        with_client(body);
        other_done = true;
        other_done.notify_all();
    });
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "callbacks-slow");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard holder = co_await lock.acquire();
        acquire_options how;
        bool first = true;
        how.on_position([&](const queue_position&) {
            if (!std::exchange(first, false)) return;
            observing.set_value();
            const auto give_up = boot_clock::now() + paced(5s);  // below the session timeout
            while (!other_done && boot_clock::now() < give_up) std::this_thread::yield();
            in_time = other_done;
        });
        taker waiter(executor, lock.acquire(how));
        auto observed = [&]() -> asio::awaitable<bool> { co_return !first; };
        co_await eventually(observed);
        co_await holder.release();
        co_await waiter.got();
        waiter.release();
    };
    with_client(options().session_timeout(paced(15s)), body);
    other.join();
    CHECK(in_time);
}

TEST_CASE("callbacks: an observer that throws is logged, and its acquire goes on") {
    std::vector<std::string> lines;
    auto sink = [&](std::string_view line) {
        lines.emplace_back(line);
        throw std::runtime_error("thrown by the sink");
    };
    std::string dir;
    auto body = [&](client zk) -> asio::awaitable<void> {
        dir = co_await fresh_directory(zk, "callbacks-throwing");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        lock_guard holder = co_await lock.acquire();
        acquire_options how;
        how.on_position([](const queue_position&) { throw std::runtime_error("thrown by the observer"); });
        taker waiter(executor, lock.acquire(how));
        auto logged = [&]() -> asio::awaitable<bool> {
            co_return std::count(lines.begin(), lines.end(),
                                 "in the background: on_position of " + dir + ": thrown by the observer") > 0;
        };
        co_await eventually(logged);
        co_await holder.release();
        co_await waiter.got();
        waiter.release();
    };
    with_client(options().log(sink), body);
}

TEST_CASE("callbacks: an observer is not called any more once its acquire has ended") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "callbacks-ended");
        const auto executor = co_await asio::this_coro::executor;
        const mutex lock(zk, dir);
        int calls = 0;
        for (int steps = 0; steps < 60; ++steps) {
            std::vector<lock_guard> ahead;
            ahead.push_back(co_await lock.acquire());
            auto alive = std::make_shared<bool>(true);
            bool late = false;
            // What an observer refers to is often on the stack of who acquires.
            auto acquire = [&, alive]() -> asio::awaitable<void> {
                auto observe = [&late, &calls, weak = std::weak_ptr<bool>(alive)](const queue_position&) {
                    ++calls;
                    const auto still = weak.lock();
                    if (!still || !*still) late = true;
                };
                acquire_options how;
                how.on_position(observe);
                std::exception_ptr failed;
                try {
                    (void)co_await lock.acquire(how);
                } catch (...) {
                    failed = std::current_exception();
                }
                *alive = false;
                if (failed) std::rethrow_exception(failed);
            };
            running acquiring(executor, acquire());
            co_await turns(steps);
            acquiring.cancel();
            ahead.clear();
            co_await acquiring.end();
            co_await turns(20);
            CHECK_FALSE(late);
        }
        CHECK(calls > 0);
    };
    with_client(body);
}
