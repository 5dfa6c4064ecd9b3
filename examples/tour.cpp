// A tour: tour 127.0.0.1:2181. The README shows a part of it, and a test compares them.
#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/this_coro.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

// [tour]
asio::awaitable<void> tour(std::string servers) {
    const auto executor = co_await asio::this_coro::executor;
    zkasio::client zk(executor, zkasio::client_options(servers).session_timeout(10s));
    co_await zk.connected();

    zkasio::mutex orders(zk, "/tour/lock");  // every process that names this path shares the lock
    {
        zkasio::lock_guard guard = co_await orders.acquire();
        std::cout << "ours, with fencing token " << guard.token().value() << "\n";
    }  // released

    auto body = [&](zkasio::lock_guard& guard) -> asio::awaitable<void> {
        const auto visits = co_await zk.exists("/tour/visits");
        zkasio::transaction visit;
        if (visits)
            visit.set("/tour/visits", "", visits->version);
        else
            visit.create("/tour/visits");
        co_await guard.commit(visit);  // applied if, and only if, the lock is still ours: ZooKeeper looks
        std::cout << "visit number " << (visits ? visits->version + 2 : 1) << "\n";
    };
    // The body is cancelled when the lock is lost, and then this throws errc::lock_lost.
    co_await orders.with_lock(body);
}
// [/tour]

int main(int argc, char** argv) {
    asio::io_context io;
    asio::co_spawn(io, tour(argc > 1 ? argv[1] : "127.0.0.1:2181"), [](std::exception_ptr failed) {
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const zkasio::error& e) {  // "exists /tour/visits: no permission"
            std::cerr << e.what() << (e.code() == zkasio::errc::lock_lost ? " (somebody else may have it)\n" : "\n");
            std::exit(1);
        }
    });
    io.run();
}
