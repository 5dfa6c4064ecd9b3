#pragma once

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace order_server {

/// Runs what blocks, calls of SQLite, on a thread beside those of the io_context. One thread: so what shares the pool
/// is never used by two at a time, and SQLite has but one writer anyway.
class blocking_pool {
public:
    /// *Completes when* `f()` has returned, with that, on the executor of the coroutine that awaits it. *Fails with*
    /// what `f` throws. *Cancellation*: does nothing, since the call goes on; so what `f` refers to lives until then.
    template <class F>
    asio::awaitable<std::invoke_result_t<F&>> run(F f) {
        using value = std::invoke_result_t<F&>;
        std::optional<value> result;
        std::exception_ptr failed;
        auto work = [&] {
            try {
                result.emplace(f());
            } catch (...) {
                failed = std::current_exception();
            }
        };
        auto initiate = [this, &work](auto handler) {
            auto home = asio::get_associated_executor(handler);
            auto back = [handler = std::move(handler), guard = asio::make_work_guard(home), home, &work]() mutable {
                work();
                asio::dispatch(home, [handler = std::move(handler)]() mutable { std::move(handler)(); });
            };
            asio::post(thread_, std::move(back));
        };
        co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiate, asio::use_awaitable);
        if (failed) std::rethrow_exception(failed);
        co_return std::move(*result);
    }

    /// Waits until all is done that was begun.
    void join() { thread_.join(); }

private:
    asio::thread_pool thread_{1};
};

}  // namespace order_server
