#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/revocation.hpp>

#include <chrono>
#include <optional>
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

}  // namespace zkasio
