// docs/start.md: server [SERVERS [SECONDS]]
// [server]
#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>

using namespace std::chrono_literals;

// However many of these run, on however many machines: one at a time works.
asio::awaitable<void> serve(zkasio::client zk, int seconds) {
    const zkasio::mutex lock(zk, "/five-minutes/lock");
    auto work = [seconds](zkasio::lock_guard& guard) -> asio::awaitable<void> {
        std::cout << "the lock is ours, with token " << guard.token().value() << std::endl;
        asio::steady_timer pause(co_await asio::this_coro::executor);
        for (int i = 1; i <= seconds; ++i) {
            pause.expires_after(1s);
            co_await pause.async_wait(asio::use_awaitable);  // throws when the lock is lost
            std::cout << "working, " << i << " s" << std::endl;
        }
    };
    std::cout << "waiting for the lock" << std::endl;
    co_await lock.with_lock(work);
}

int main(int argc, char** argv) {
    const std::string servers = argc > 1 ? argv[1] : "127.0.0.1:2181";
    const int seconds = argc > 2 ? std::stoi(argv[2]) : 30;
    asio::io_context io;
    const zkasio::client zk(io, zkasio::client_options(servers).session_timeout(10s));

    // At Ctrl-C, and at the end: close() ends every wait, and tells the servers. The next in line goes on at once.
    asio::signal_set signals(io, SIGINT, SIGTERM);
    bool stopping = false;
    signals.async_wait([&](std::error_code ended, int) {
        stopping = !ended;
        asio::co_spawn(io, zk.close(), asio::detached);
    });

    int status = 0;
    asio::co_spawn(io, serve(zk, seconds), [&](std::exception_ptr failed) {
        signals.cancel();
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            std::cerr << e.what() << std::endl;  // "acquire /five-minutes/lock: not connected (...)"
            if (!stopping) status = 1;           // Ctrl-C ends the wait for the lock, or the work under it
        }
    });
    io.run();  // returns when the session has been ended
    return status;
}
// [/server]
