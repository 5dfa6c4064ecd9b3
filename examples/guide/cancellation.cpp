// docs/cancellation.md: time limits, cancellation, bodies.
#include "guide.hpp"

#include <zkasio/coroutines/async.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

using namespace std::chrono_literals;

namespace cancellation_page {
namespace {

// ------------------------------------------------------------------------------------------ time limits

// [limit]
asio::awaitable<bool> update(zkasio::mutex lock) {
    const auto guard = co_await lock.try_acquire_for(2s);
    if (!guard) co_return false;  // another contender has the lock
    co_return true;
}
// [/limit]

// [timeout]
asio::awaitable<std::string> settings_in_time(zkasio::client zk) {
    const zkasio::node_data read = co_await zkasio::timeout(2s, zk.get("/guide/settings"));
    co_return read.data;
}
// [/timeout]

// [hang_up]
// Completes when the peer closes its connection.
asio::awaitable<void> hung_up(asio::ip::tcp::socket& peer) {
    char byte = 0;
    std::error_code failed;
    while (!failed)
        co_await peer.async_read_some(asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, failed));
}

// The lock for a request: none when the deadline has passed, or when nobody waits for the answer any more.
asio::awaitable<zkasio::lock_guard> lock_for(asio::ip::tcp::socket& peer, zkasio::mutex lock) {
    using namespace asio::experimental::awaitable_operators;
    // Without as_result(), the exception at the deadline would not end the wait for the peer.
    auto first = co_await (zkasio::as_result(zkasio::timeout(2s, lock.acquire())) || hung_up(peer));
    if (first.index() == 1) co_return zkasio::lock_guard();  // empty
    auto& granted = std::get<0>(first);
    if (!granted && granted.error().code() == zkasio::errc::timed_out) co_return zkasio::lock_guard();
    co_return std::move(granted).value();  // throws any other error
}
// [/hang_up]

// ---------------------------------------------------------------------------------- completion tokens and cancellation

// [tokens]
void settings_for_a_callback(asio::any_io_executor loop, zkasio::client zk) {
    zkasio::async(loop, zk.get("/guide/settings"), [](std::error_code failed, zkasio::node_data read) {
        if (!failed) std::cout << read.data << "\n";
    });
}

// On any thread except the loop's, which must not be blocked.
std::string settings_for_a_thread(asio::any_io_executor loop, zkasio::client zk) {
    std::future<zkasio::node_data> read = zkasio::async(loop, zk.get("/guide/settings"), asio::use_future);
    return read.get().data;  // throws the exception of the operation
}

// In coroutines whose executor has another type than any_io_executor.
using loop_executor = asio::io_context::executor_type;
constexpr asio::use_awaitable_t<loop_executor> use_loop_awaitable;

asio::awaitable<std::string, loop_executor> settings_for_a_loop(zkasio::client zk) {
    const zkasio::node_data read = co_await zkasio::async(zk.get("/guide/settings"), use_loop_awaitable);
    co_return read.data;
}
// [/tokens]

void from_another_thread(std::string servers) {
    asio::thread_pool threads(1);
    const zkasio::client zk(threads.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    const std::string read = settings_for_a_thread(threads.get_executor(), zk);
    expect(read == "quiet", "the last settings are there");
    settings_for_a_callback(threads.get_executor(), zk);
    asio::io_context loop;
    std::string in_loop;
    auto read_in_loop = [&]() -> asio::awaitable<void, loop_executor> {
        std::string now = co_await settings_for_a_loop(zk);
        in_loop = std::move(now);
    };
    asio::co_spawn(loop, read_in_loop, rethrow);
    loop.run();
    expect(in_loop == read, "each kind of coroutine reads the same");
    asio::co_spawn(threads, zk.close(), asio::use_future).get();
    threads.join();
}

// [cancel]
asio::awaitable<void> take_turns(zkasio::mutex lock) {
    const zkasio::lock_guard guard = co_await lock.acquire();
    co_await guard.lost();
}

void cancelled_from_outside(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    asio::cancellation_signal stop;
    auto ended = [&](std::exception_ptr failed) {
        try {
            rethrow(failed);
        } catch (const std::system_error& e) {
            if (e.code() != zkasio::condition::cancelled) throw;
        }
        asio::co_spawn(io, zk.close(), [](std::exception_ptr e, zkasio::close_result) { rethrow(e); });
    };
    asio::co_spawn(io, take_turns(zkasio::mutex(zk, "/guide/cancel")),
                   asio::bind_cancellation_slot(stop.slot(), ended));
    asio::post(io, [&] { stop.emit(asio::cancellation_type::terminal); });
    io.run();
}
// [/cancel]

// --------------------------------------------------------------------------------- bodies, and tasks that end together

// [body_value]
asio::awaitable<std::string> read_under_lock(zkasio::client zk, const zkasio::lockable& lock) {
    auto body = [&](zkasio::lock_guard&) -> asio::awaitable<std::string> {
        const zkasio::node_data read = co_await zk.get("/guide/settings");
        co_return read.data;
    };
    co_return co_await lock.with_lock(body);  // the result of the body
}
// [/body_value]

// [scope]
asio::awaitable<void> answer_requests() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

asio::awaitable<void> lead(zkasio::client zk, zkasio::mutex lock) {
    co_await lock.with_lock([&](zkasio::lock_guard& guard) -> asio::awaitable<void> {
        co_await zkasio::with_task_scope([&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(answer_requests());
            tasks.spawn(zkasio::revoke(zk, guard.path()));  // a successor, say, asks for the lock
            co_await guard.revoke_requested();
            tasks.cancel();
        });  // here all tasks have ended
    });
}
// [/scope]

// ------------------------------------------------------------------------------------------ errors as values

// [as_result]
asio::awaitable<std::string> settings_or(zkasio::client zk, std::string otherwise) {
    const auto read = co_await zkasio::as_result(zkasio::timeout(2s, zk.get("/guide/no-settings")));
    if (!read && read.error().code() == zkasio::zk_errc::no_node) co_return otherwise;
    co_return read->data;  // if the result is an error, this throws it
}
// [/as_result]

// ------------------------------------------------------------------------------------------ g++ 12

// [named_closure]
asio::awaitable<void> rename(zkasio::client zk, zkasio::mutex lock, std::string name) {
    auto body = [zk, name](zkasio::lock_guard& guard) -> asio::awaitable<void> {
        zkasio::transaction steps;
        steps.set("/guide/settings", name);
        co_await guard.commit(steps);
    };
    co_await lock.with_lock(body);  // not the lambda itself: its captures would be destroyed twice
}
// [/named_closure]

// [no_ternary]
asio::awaitable<void> read_or_write(zkasio::shared_mutex lock, bool write) {
    const auto kind = write ? zkasio::lock_kind::exclusive : zkasio::lock_kind::shared;
    // Not: write ? co_await lock.acquire() : co_await ...
    const zkasio::lock_guard guard = co_await lock.acquire(kind);
}
// [/no_ternary]

asio::awaitable<void> in_coroutines(zkasio::client zk) {
    const auto before = co_await zk.exists("/guide/settings");
    if (!before) co_await zk.create("/guide/settings", "verbose", zkasio::with_parents());
    const zkasio::mutex lock(zk, "/guide/lock");
    asio::ip::tcp::acceptor door(co_await asio::this_coro::executor, {asio::ip::address_v4::loopback(), 0});
    asio::ip::tcp::socket peer(door.get_executor());
    peer.connect(door.local_endpoint());
    asio::ip::tcp::socket server = door.accept();
    zkasio::lock_guard first = co_await lock_for(server, lock);
    expect(first.held(), "nobody else has /guide/lock");
    peer.close();
    const zkasio::lock_guard second = co_await lock_for(server, lock);
    expect(!second.held(), "the peer has hung up while the first request has the lock");
    co_await first.release();
    const bool updated = co_await update(lock);
    expect(updated, "nobody else has /guide/lock");
    co_await rename(zk, lock, "quiet");
    const std::string now = co_await settings_in_time(zk);
    expect(now == "quiet", "what was committed is there in time");
    const std::string locked = co_await read_under_lock(zk, lock);
    expect(locked == now, "the body returns what it has read");
    const zkasio::shared_mutex shared(zk, "/guide/shared");
    co_await read_or_write(shared, true);
    co_await read_or_write(shared, false);
    co_await lead(zk, lock);
    const std::string missing = co_await settings_or(zk, "none");
    expect(missing == "none", "there is nothing at /guide/no-settings, and that is no exception");
    co_await zk.close();
}

void all(std::string servers) {
    asio::io_context io;
    const zkasio::client zk(io.get_executor(), zkasio::client_options(servers).session_timeout(10s));
    asio::co_spawn(io, in_coroutines(zk), rethrow);
    io.run();
    cancelled_from_outside(servers);
    from_another_thread(servers);
}

}  // namespace
}  // namespace cancellation_page

void guide_cancellation(std::string servers) { cancellation_page::all(servers); }
