#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/revocation.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

/// How with_lock() acquires the lock, and what ends its body before the lock is lost. An acquire_options or a
/// revocation_policy converts to it.
class ZKASIO_EXPORT with_lock_options {
public:
    with_lock_options() {}
    with_lock_options(acquire_options how) : acquire_(std::move(how)) {}
    with_lock_options(revocation_policy policy) : revocation_(policy) {}

    /// The options of the acquire.
    with_lock_options& acquire(acquire_options how) { acquire_ = std::move(how); return *this; }
    /// If the lock is not acquired within this time, connecting included, with_lock() fails with errc::timed_out, or
    /// with errc::not_connected if there was no connection at all, and the body does not begin; see
    /// lockable::try_acquire_for(). None by default.
    with_lock_options& time_limit(any_duration limit) { limit_ = limit; return *this; }
    /// The reaction when the lock is asked back while the body runs: none by default.
    with_lock_options& revocation(revocation_policy policy) { revocation_ = policy; return *this; }
    /// See lock_guard::run(). 0 by default.
    with_lock_options& stop_margin(any_duration margin) { stop_margin_ = margin; return *this; }

    const acquire_options& acquire() const noexcept { return acquire_; }
    const std::optional<std::chrono::nanoseconds>& time_limit() const noexcept { return limit_; }
    const revocation_policy& revocation() const noexcept { return revocation_; }
    std::chrono::nanoseconds stop_margin() const noexcept { return stop_margin_; }

private:
    acquire_options acquire_;
    std::optional<std::chrono::nanoseconds> limit_;
    revocation_policy revocation_ = revocation_policy::ignore();
    std::chrono::nanoseconds stop_margin_{0};
};

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
