// What check.py counts the instructions of: zkasio over a backend in memory, without a server. And what system_calls.py
// counts the system calls of, at a server.
//
//     zkasio_instructions get|set|cycle|waiters|cache N
//     zkasio_instructions get_at|get_beside_watch_at N SERVERS
//
// get, set: N requests, one after another. cycle: N times a mutex is acquired and released without contention. waiters:
// N coroutines get a mutex one after another. cache: a tree_cache of N nodes becomes ready.

#include "support/client_over.hpp"
#include "unit/support/fake_server.hpp"
#include "unit/support/fake_tree.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/watch_stream.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

namespace {

using namespace std::chrono_literals;
using namespace zkasio;
using namespace zkasio::test;
using scenario = asio::awaitable<void> (*)(client zk, long n);

void rethrow(std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
}

asio::awaitable<void> get(client zk, long n) {
    for (long i = 0; i < n; ++i) co_await zk.get("/a");
}

asio::awaitable<void> set(client zk, long n) {
    for (long i = 0; i < n; ++i) co_await zk.set("/a", "0123456789abcdef");
}

asio::awaitable<void> cycle(client zk, long n) {
    const mutex lock(zk, "/lock");
    for (long i = 0; i < n; ++i) {
        lock_guard guard = co_await lock.acquire();
        co_await guard.release();
    }
}

asio::awaitable<void> wait_once(mutex lock) { const lock_guard guard = co_await lock.acquire(); }

asio::awaitable<void> waiters(client zk, long n) {
    const mutex lock(zk, "/lock");
    {
        const lock_guard first = co_await lock.acquire();
        for (long i = 0; i < n; ++i) asio::co_spawn(zk.get_executor(), wait_once(lock), rethrow);
    }
    const lock_guard last = co_await lock.acquire();
}

asio::awaitable<void> fill(client zk, long) {
    const tree_cache nodes(zk, "/tree");
    co_await nodes.ready();
}

asio::awaitable<void> get_beside_watch(client zk, long n) {
    const watch_stream changes = co_await zk.add_watch("/zookeeper", watch_mode::recursive);
    for (long i = 0; i < n; ++i) co_await zk.get("/");
}

int run_at(const std::string& servers, bool beside_watch, long n) {
    asio::io_context io(1);
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        const client zk(io.get_executor(), client_options(servers).session_timeout(1h));
        co_await zk.connected();
        if (beside_watch) {
            co_await get_beside_watch(zk, n);
        } else {
            for (long i = 0; i < n; ++i) co_await zk.get("/");
        }
        co_await zk.close();
    };
    asio::co_spawn(io, all, rethrow);
    io.run();
    return 0;
}

int run(scenario what, long n) {
    asio::io_context io(1);
    fake_server server;
    fake_tree tree;
    server.answer = [&](const detail::request& r) { return tree(r); };
    // Nothing is sent because of the time that the run takes.
    auto options = client_options("10.0.0.1:2181").session_timeout(1h).connection_timeout(1h);
    server.session_timeout = server.tick = 1h;
    tree.create_as("/a", 77);
    tree.create_as("/tree", 0);
    server.nodes_are_ours = what != &fill;  // a cache looks below nodes that no session owns
    for (long i = 0; what == &fill && i < n; ++i) tree.create_as("/tree/" + std::to_string(i), 0);
    const auto core = std::make_shared<detail::core>(io.get_executor(), options, server.factory());
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        const client zk = client_over(core);
        co_await zk.connected();
        co_await what(zk, n);
        co_await zk.close();
    };
    asio::co_spawn(io, all, rethrow);
    io.run();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    static const std::map<std::string, scenario> scenarios{
        {"get", &get}, {"set", &set}, {"cycle", &cycle}, {"waiters", &waiters}, {"cache", &fill}};
    const std::string name = argc > 1 ? argv[1] : "";
    if (argc == 4 && (name == "get_at" || name == "get_beside_watch_at"))
        return run_at(argv[3], name == "get_beside_watch_at", std::atol(argv[2]));
    const auto what = argc == 3 ? scenarios.find(name) : scenarios.end();
    if (what == scenarios.end()) {
        std::cerr << "usage: zkasio_instructions get|set|cycle|waiters|cache N\n"
                     "       zkasio_instructions get_at|get_beside_watch_at N SERVERS\n";
        return 2;
    }
    return run(what->second, std::atol(argv[2]));
}
