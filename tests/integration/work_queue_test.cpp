#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/queues/work_queue.hpp>

#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <vector>

namespace work_queue_integration_tests {

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("work_queue: two processes share items, over the end of a session") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "work-queue");
        const client other = surroundings::current().make_client(zk.get_executor(), options());
        const work_queue q(zk, dir + "/q"), theirs(other, dir + "/q");
        std::vector<std::string> put, got;
        for (int i = 0; i < 50; ++i) put.push_back(std::to_string(100 + i));
        co_await theirs.put_all(put);
        delivery lost = co_await theirs.receive();
        CHECK(lost.item() == "100");
        co_await expire_session(other);
        const auto work = [&](work_queue from) -> asio::awaitable<void> {
            for (int i = 0; i < 25; ++i) {
                delivery d = co_await from.receive();
                if (d.item() == "100") CHECK(d.attempt() == 2);
                co_await d.done();
                got.push_back(d.item());
            }
        };
        running a(zk.get_executor(), work(q)), b(zk.get_executor(), work(theirs));
        const std::error_code first = co_await a.code(), second = co_await b.code();
        CHECK_FALSE(first);
        CHECK_FALSE(second);
        std::sort(got.begin(), got.end());
        CHECK(got == put);
        const std::error_code done = co_await code_of(lost.done());
        CHECK(done == errc::lock_lost);
        const work_queue_info n = co_await q.info();
        CHECK(n.waiting + n.claimed == 0);
        co_await q.put("late", put_options().delay(std::chrono::milliseconds(50)));
        const std::string late = co_await theirs.take();
        CHECK(late == "late");
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("work_queue: coroutines on several threads", "[real-threads]") {
    asio::thread_pool pool(4);
    const client zk(asio::any_io_executor(pool.get_executor()), options());
    const auto prepare = [&]() -> asio::awaitable<std::string> { return fresh_directory(zk, "work-queue-threads"); };
    const std::string dir = asio::co_spawn(pool, prepare(), asio::use_future).get();
    const work_queue q(zk, dir + "/q");
    constexpr int tasks = 8, times = 15;
    std::mutex mutex;
    std::vector<std::string> got, wanted;
    const auto produce = [&](int number) -> asio::awaitable<void> {
        for (int i = 0; i < times; ++i) {
            const std::string item = std::to_string(100 * (number + 1) + i);
            co_await q.put(item);
            const std::lock_guard lock(mutex);
            wanted.push_back(item);
        }
    };
    const auto consume = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < times; ++i) {
            delivery d = co_await q.receive();
            std::string item = d.item();
            if (i % 3 == 0) {
                co_await d.again();
                item = co_await q.take();
            } else {
                co_await d.done();
            }
            const std::lock_guard lock(mutex);
            got.push_back(item);
        }
    };
    std::vector<std::future<void>> ended;
    for (int i = 0; i < tasks; ++i) {
        ended.push_back(asio::co_spawn(asio::make_strand(pool.get_executor()), produce(i), asio::use_future));
        ended.push_back(asio::co_spawn(asio::make_strand(pool.get_executor()), consume(), asio::use_future));
    }
    for (std::future<void>& f : ended) f.get();
    asio::co_spawn(pool, zk.close(), asio::use_future).get();
    pool.join();
    std::sort(got.begin(), got.end());
    std::sort(wanted.begin(), wanted.end());
    CHECK(got == wanted);
}

}  // namespace work_queue_integration_tests
