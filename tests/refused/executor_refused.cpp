// Coroutines whose executor is not asio::any_io_executor: a line that is marked fails, with words that say what to do.
#include <zkasio/coroutines/async.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>

using namespace zkasio;

template <class T>
using loop_awaitable = asio::awaitable<T, asio::io_context::executor_type>;
constexpr asio::use_awaitable_t<asio::io_context::executor_type> use_loop;

asio::awaitable<int> number();
loop_awaitable<int> number_on_loop();
loop_awaitable<void> work_on_loop();

loop_awaitable<void> all() {
    constexpr auto soon = std::chrono::seconds(1);
    (void)co_await async(as_result(timeout(soon, number())), use_loop);
    co_await timeout(soon, work_on_loop());                              // refused
    (void)co_await timeout(boot_clock::now() + soon, number_on_loop());  // refused
    (void)co_await as_result(number_on_loop());                          // refused
}
