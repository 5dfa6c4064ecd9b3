#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/result.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <type_traits>
#include <utility>

namespace zkasio {

/// `result<lock_guard> r = co_await as_result(lock.acquire())`: runs any operation, and returns its error as a value
/// instead of throwing an exception.
///
/// *Completes when* the operation does. A zkasio::error becomes a value, and so does the operation_aborted with which
/// Asio's own operations end when they are cancelled (in an error whose operation is named "operation").
/// *Fails with* every other exception of the operation, which is a user's exception.
/// *Cancellation*: cancels the operation, whose error is returned. As always with Asio, a coroutine that was cancelled
/// cannot await anything else: its next co_await throws, even that of an as_result().
template <class T>
asio::awaitable<result<T>> as_result(asio::awaitable<T> operation) {
    if (!operation.valid())
        co_return result<T>(error(errc::invalid_argument, "as_result", {}, "the operation is empty"));
    std::optional<detail::result_failure> failed;
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(operation);
            co_return result<T>(std::in_place);
        } else {
            T value = co_await std::move(operation);
            co_return result<T>(std::move(value));
        }
    } catch (...) {
        failed = detail::current_failure();
    }
    co_return result<T>(std::move(*failed));
}

}  // namespace zkasio
