#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>

#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace counters_tests {

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("counters: coroutines on several threads, and ids taken by threads", "[real-threads]") {
    asio::thread_pool pool(4);
    const client zk(asio::any_io_executor(pool.get_executor()), options());
    const auto prepare = [&]() -> asio::awaitable<std::string> { return fresh_directory(zk, "counters"); };
    const std::string dir = asio::co_spawn(pool, prepare(), asio::use_future).get();
    const atomic_counter n(zk, dir + "/n");
    const id_allocator ids(zk, dir + "/ids", id_options().block(100));
    std::mutex mutex;
    std::set<std::uint64_t> all;
    std::set<std::int64_t> sums;
    constexpr int tasks = 16, times = 25;
    const auto task = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < times; ++i) {
            const std::int64_t sum = co_await n.add(1);
            const std::uint64_t id = co_await ids.next();
            const std::lock_guard lock(mutex);
            sums.insert(sum);
            all.insert(id);
        }
    };
    std::vector<std::future<void>> ended;
    for (int i = 0; i < tasks; ++i)
        ended.push_back(asio::co_spawn(asio::make_strand(pool.get_executor()), task(), asio::use_future));
    std::vector<std::thread> takers;
    std::size_t taken = 0;
    for (int i = 0; i < 3; ++i)
        takers.emplace_back([&] {
            for (int left = 200; left > 0;) {
                const std::optional<std::uint64_t> id = ids.try_next();
                if (!id) {
                    std::this_thread::yield();
                    continue;
                }
                --left;
                const std::lock_guard lock(mutex);
                all.insert(*id);
                ++taken;
            }
        });
    for (std::thread& t : takers) t.join();
    for (std::future<void>& f : ended) f.get();
    const std::int64_t last = asio::co_spawn(pool, n.get(), asio::use_future).get();
    asio::co_spawn(pool, zk.close(), asio::use_future).get();
    pool.join();
    CHECK(last == tasks * times);
    CHECK(sums.size() == tasks * times);
    CHECK(all.size() == tasks * times + taken);
}

}  // namespace counters_tests
