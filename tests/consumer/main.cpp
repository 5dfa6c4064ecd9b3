#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

// Compiles, links and runs against what was installed. Nobody listens where it connects to.
asio::awaitable<void> consume() {
    const auto executor = co_await asio::this_coro::executor;
    const zkasio::client zk(executor,
                            zkasio::client_options("127.0.0.1:1").connection_timeout(std::chrono::milliseconds(50)));
    const zkasio::mutex lock(zk, "/lock");
    bool refused = false;
    try {
        (void)co_await lock.acquire();
    } catch (const zkasio::error& e) {
        refused = e.code() == zkasio::errc::not_connected;
    }
    co_await zk.close();
    if (!refused) throw std::runtime_error("connected to nobody");
}

// Templates of the headers call functions that are not public themselves. Not run: they have to be there.
asio::awaitable<void> link_templates(zkasio::client zk, zkasio::lock_guard guard, zkasio::one_shot_event end) {
    auto body = []() -> asio::awaitable<void> { co_return; };
    auto under_lock = [](zkasio::lock_guard&) -> asio::awaitable<void> { co_return; };
    auto in_session = [](zkasio::session) -> asio::awaitable<void> { co_return; };
    const zkasio::mutex lock(zk, "/lock");
    co_await zkasio::run_with_deadline(zkasio::boot_clock::time_point(), body);
    co_await zk.with_session(in_session);
    co_await lock.with_lock(under_lock);
    co_await zkasio::with_lock(lock.acquire(), under_lock);
    co_await guard.run(body);
    co_await end.run_until(body);
    auto in_scope = [](zkasio::task_scope& tasks) -> asio::awaitable<bool> {
        const bool started = tasks.spawn([]() -> asio::awaitable<void> { co_return; });
        tasks.cancel();
        co_return started && tasks.cancelled() && tasks.size() == 0 && tasks.get_executor();
    };
    auto scope = zkasio::timeout(std::chrono::seconds(1), zkasio::with_task_scope(in_scope));
    const zkasio::result<bool> value = co_await zkasio::as_result(std::move(scope));
    if (!value) throw value.error();
    co_await zkasio::timeout(zkasio::boot_clock::time_point(), body());
}

int main() {
    asio::io_context io;
    int result = 0;
    const auto volatile linked = &link_templates;
    if (!linked) return 1;
    asio::co_spawn(io, consume(), [&](std::exception_ptr failed) { result = failed ? 1 : 0; });
    io.run();
    return result;
}
