#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace zkasio {

namespace detail {

inline boot_clock::time_point end_of(boot_clock::time_point limit) noexcept { return limit; }
ZKASIO_EXPORT boot_clock::time_point end_of(std::chrono::nanoseconds limit);
ZKASIO_EXPORT asio::awaitable<void> run_with_timeout(boot_clock::time_point end,
                                                     std::function<asio::awaitable<void>()> body);
ZKASIO_EXPORT asio::awaitable<bool> run_until_deadline(std::function<asio::awaitable<void>()> body,
                                                       boot_clock::time_point deadline);

template <class Limit, class T>
asio::awaitable<T> end_within(Limit limit, asio::awaitable<T> operation) {
    const boot_clock::time_point end = end_of(limit);
    if (!operation.valid()) throw error(errc::invalid_argument, "timeout", {}, "the operation is empty");
    if constexpr (std::is_void_v<T>) {
        std::function<asio::awaitable<void>()> body = [&operation] { return std::move(operation); };
        co_await run_with_timeout(end, std::move(body));
    } else {
        std::optional<T> value;
        std::function<asio::awaitable<void>()> body = [&operation, &value]() -> asio::awaitable<void> {
            T result = co_await std::move(operation);
            value.emplace(std::move(result));
        };
        co_await run_with_timeout(end, std::move(body));
        co_return std::move(*value);
    }
}

}  // namespace detail

/// `co_await timeout(5s, lock.acquire())`: runs any operation, or coroutine, with a limit on its time. When the limit
/// has passed, the operation receives a terminal cancellation.
///
/// *Completes when* the operation has really ended. Its result counts, even a result that came after the limit: a
/// lock_guard is never lost to a race. The operation runs on the caller's executor if that is an
/// asio::strand<asio::any_io_executor>, else on a strand over it.
/// *Fails with* errc::timed_out if the cancellation at the limit has ended the operation, with the operation's name and
/// path, with the reason if there was no connection, and with error::outcome_unknown() if the operation was a write
/// that may have been applied. With errc::invalid_argument for a negative `limit`: the operation is not begun. With
/// every other exception of the operation.
/// *Cancellation*, of every type that the caller has enabled, is passed on to the operation. If the cancellation comes
/// before the limit, this fails with asio::error::operation_aborted and not with errc::timed_out, even if the operation
/// takes longer than the limit to end.
/// @param limit from the moment in which this is awaited. With limit 0 the operation is begun, too, and cancelled as
/// soon as it waits; a result that is there by that time counts. Time for which the machine is suspended does not
/// count.
template <class T>
asio::awaitable<T> timeout(any_duration limit, asio::awaitable<T> operation) {
    return detail::end_within(std::chrono::nanoseconds(limit), std::move(operation));
}

/// timeout() with a point in time as its limit. A point in time that has passed counts as a limit of 0.
template <class T>
asio::awaitable<T> timeout(boot_clock::time_point limit, asio::awaitable<T> operation) {
    return detail::end_within(limit, std::move(operation));
}

template <class Limit, class T, class Executor>
    requires(!std::is_same_v<Executor, asio::any_io_executor>)
asio::awaitable<T, Executor> timeout(Limit, asio::awaitable<T, Executor> operation) {
    detail::refuse_other_executor<Executor, Limit, T>();
    return operation;
}

/// Runs `body()`, a coroutine, on a strand over the caller's executor, and cancels the body (terminally) at `deadline`.
/// Time for which the machine is suspended while the body runs does not count: the body is cancelled that much later.
/// *Completes when* the body has ended: with true if the body ended of its own accord, with false if the deadline ended
/// the body. If the body returns a value: with a std::optional of the value, which is empty in the second case. *Fails
/// with* every exception of the body but the cancellation, also of a write, whose outcome timeout() tells.
/// *Cancellation*, of every type that the caller has enabled, reaches the body, too.
/// *Lifetime* of the body: see kept_body.hpp.
template <class Body>
asio::awaitable<detail::unless_stopped<detail::body_value<Body>>> run_with_deadline(boot_clock::time_point deadline,
                                                                                    Body&& body) {
    return detail::run_kept(std::forward<Body>(body), &detail::run_until_deadline, deadline);
}

}  // namespace zkasio
