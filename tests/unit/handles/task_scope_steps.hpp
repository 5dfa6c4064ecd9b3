#pragma once

#include "support/test_client.hpp"

#include <zkasio/coroutines/task_scope.hpp>

#include <asio/post.hpp>
#include <asio/redirect_error.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::test {

/// Coroutines wait for it until it is opened. On one thread.
class gate {
public:
    explicit gate(asio::any_io_executor executor)
        : timer_(std::move(executor), asio::steady_timer::time_point::max()) {}

    asio::awaitable<void> wait() {
        std::error_code code;
        if (!open_) co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, code));
        if (!open_) throw std::system_error(code);
    }
    void open() {
        open_ = true;
        timer_.cancel();
    }

private:
    asio::steady_timer timer_;
    bool open_ = false;
};

/// Until it is cancelled.
inline asio::awaitable<void> forever() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

/// Until it is cancelled, by this type.
inline asio::awaitable<void> until_cancelled_by(asio::cancellation_type& seen) {
    std::exception_ptr ended;
    try {
        co_await forever();
    } catch (...) {
        ended = std::current_exception();
    }
    seen = (co_await asio::this_coro::cancellation_state).cancelled();
    std::rethrow_exception(ended);
}

/// Is cancelled, takes its time, and ends by itself.
inline asio::awaitable<void> reluctantly(gate& until, bool& ended) {
    std::error_code code;
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, code));
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await until.wait();
    ended = true;
}

inline asio::awaitable<void> fail_with(std::string text) {
    throw std::runtime_error(text);
    co_return;
}

inline asio::awaitable<void> fail_after(gate& when, std::string text) {
    co_await when.wait();
    throw std::runtime_error(text);
}

// Not in a CHECK: g++ 12 awaits there three times.
template <class T>
asio::awaitable<void> expect_code(asio::awaitable<T> operation, std::error_code expected) {
    const std::error_code got = co_await code_of(std::move(operation));
    CHECK(got == expected);
}
template <class T>
asio::awaitable<void> expect_message(asio::awaitable<T> operation, std::string expected) {
    const std::string got = co_await message_of(std::move(operation));
    CHECK(got == expected);
}

/// Lets everything happen that is ready to.
inline asio::awaitable<void> settle() {
    for (int i = 0; i < 20; ++i) co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

}  // namespace zkasio::test
