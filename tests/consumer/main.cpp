#include <zkasio/recipes/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

// Compiles, links and runs against what was installed. Nobody listens where it connects to.
asio::awaitable<void> consume() {
    const auto executor = co_await asio::this_coro::executor;
    const zkasio::client zk(executor, zkasio::client_options("127.0.0.1:1").connection_timeout(std::chrono::milliseconds(50)));
    const zkasio::mutex lock(zk, "/lock");
    bool refused = false;
    try {
        co_await lock.acquire();
    } catch (const zkasio::error& e) {
        refused = e.code() == zkasio::errc::not_connected;
    }
    co_await zk.close();
    if (!refused) throw std::runtime_error("connected to nobody");
}

int main() {
    asio::io_context io;
    int result = 0;
    asio::co_spawn(io, consume(), [&](std::exception_ptr failed) { result = failed ? 1 : 0; });
    io.run();
    return result;
}
