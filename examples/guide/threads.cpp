// docs/in-your-server.md: zkasio in a server with several threads.
#include "guide.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <chrono>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace threads_page {
namespace {

// [threads]
asio::awaitable<void> worker(zkasio::mutex lock) {
    const zkasio::lock_guard guard = co_await lock.acquire();
    // here: this coroutine's strand, one thread at a time, and only one worker of all processes
}

void on_four_threads(std::string servers) {
    asio::thread_pool threads(4);
    const zkasio::client zk(threads.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    std::vector<std::future<void>> workers;
    for (int i = 0; i < 8; ++i)
        workers.push_back(
            asio::co_spawn(asio::make_strand(threads), worker(zkasio::mutex(zk, "/guide/threads")), asio::use_future));
    for (std::future<void>& w : workers) w.get();
    asio::co_spawn(threads, zk.close(), asio::use_future).get();
    threads.join();
}
// [/threads]

// [shared]
// Coroutines access the shared data on one strand only; each waits for ZooKeeper on its own executor.
class visits {
public:
    explicit visits(asio::any_io_executor threads) : strand_(asio::make_strand(threads)) {}

    asio::awaitable<int> count(std::string who) {
        auto one_more = [&]() -> asio::awaitable<int> { co_return ++of_[who]; };
        co_return co_await asio::co_spawn(strand_, one_more, asio::use_awaitable);  // there, and back
    }

private:
    asio::strand<asio::any_io_executor> strand_;
    std::map<std::string, int> of_;
};

asio::awaitable<int> visit(zkasio::mutex door, visits& all) {
    const zkasio::lock_guard guard = co_await door.acquire();
    co_return co_await all.count("somebody");
}
// [/shared]

// [own_thread]
// The client on a loop and a thread of its own: heartbeats are in time even if other threads compute for long.
class coordination {
public:
    explicit coordination(std::string servers)
        : work_(io_.get_executor()),
          zk_(io_, zkasio::client_options(servers).session_timeout(10s)),
          thread_([this] { io_.run(); }) {}

    ~coordination() {
        work_.reset();
        asio::co_spawn(io_, zk_.close(), asio::use_future).wait();
        thread_.join();
    }

    const zkasio::client& zk() const { return zk_; }  // for coroutines on any executor

private:
    asio::io_context io_;
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    zkasio::client zk_;
    std::thread thread_;
};
// [/own_thread]

// [blocking]
// On any thread except the loop's: a lock for code that blocks.
int under_lock(asio::any_io_executor loop, zkasio::mutex lock, int (*blocking_work)()) {
    const zkasio::lock_guard guard = asio::co_spawn(loop, lock.acquire(), asio::use_future).get();
    if (!guard.held()) return -1;  // from any thread, at any time
    return blocking_work();
}  // released, in the background
// [/blocking]

// [snapshot]
// Reading a cache costs a copy of a pointer, on any thread: use it for each request.
std::string greeting(const zkasio::node_cache& text) {
    const zkasio::cached_node now = text.get();
    return now ? now.data() : "hello";
}
// [/snapshot]

void visits_on_four_threads(std::string servers) {
    asio::thread_pool threads(4);
    const zkasio::client zk(threads, zkasio::client_options(servers).session_timeout(10s));
    visits all(threads.get_executor());
    std::vector<std::future<int>> done;
    for (int i = 0; i < 8; ++i)
        done.push_back(asio::co_spawn(threads, visit(zkasio::mutex(zk, "/guide/door"), all), asio::use_future));
    int sum = 0;
    for (std::future<int>& d : done) sum += d.get();
    expect(sum == 36, "everybody is counted once");
    asio::co_spawn(threads, zk.close(), asio::use_future).get();
    threads.join();
}

}  // namespace
}  // namespace threads_page

void guide_threads(std::string servers) {
    using namespace threads_page;
    on_four_threads(servers);
    visits_on_four_threads(servers);
    const coordination own(servers);
    const zkasio::mutex lock(own.zk(), "/guide/blocking");
    expect(under_lock(own.zk().get_executor(), lock, [] { return 42; }) == 42, "the work is done under the lock");
    asio::co_spawn(own.zk().get_executor(), own.zk().create_or_set("/guide/greeting", "good day"), asio::use_future)
        .get();
    const zkasio::node_cache text(own.zk(), "/guide/greeting");
    asio::co_spawn(own.zk().get_executor(), text.ready(), asio::use_future).get();
    expect(greeting(text) == "good day", "the cache has read the node");
}
