#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/revocation.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace zkasio {

/// The body of with_lock().
using lock_body = std::function<asio::awaitable<void>(lock_guard&)>;

namespace lock_detail {
/// @param path of the lock, for messages.
ZKASIO_EXPORT asio::awaitable<void> run_with_lock(lock_body body, std::string path,
                                                  asio::awaitable<lock_guard> acquiring, revocation_policy policy,
                                                  std::chrono::nanoseconds stop_margin);

/// Implements the with_lock() members of the locks.
template <class Body>
asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock_of(std::string path,
                                                                    asio::awaitable<lock_guard> acquiring, Body&& body,
                                                                    revocation_policy policy,
                                                                    std::chrono::nanoseconds stop_margin) {
    return detail::run_kept(std::forward<Body>(body), &run_with_lock, std::move(path), std::move(acquiring), policy,
                            stop_margin);
}
}  // namespace lock_detail

/// Acquires, runs `body(guard)`, a coroutine, and releases, as the with_lock() members of the locks do. See
/// lockable::with_lock(), and lock_guard::run() for the stop margin. An empty awaitable is refused with
/// errc::invalid_argument.
template <class Body>
asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
    asio::awaitable<lock_guard> acquiring, Body&& body, revocation_policy policy = revocation_policy::ignore(),
    any_duration stop_margin = std::chrono::nanoseconds(0)) {
    return lock_detail::with_lock_of({}, std::move(acquiring), std::forward<Body>(body), policy, stop_margin);
}

}  // namespace zkasio
