#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <chrono>

namespace zkasio {

/// How leader_election::lead() goes on from one term to the next.
class ZKASIO_EXPORT lead_options {
public:
    lead_options() {}
    /// If the body returns before the leadership is lost, lead() stands again, behind all present candidates, instead
    /// of completing. (Curator's LeaderSelector::autoRequeue(). The option concerns this case only: after a loss lead()
    /// always stands again.) If the body returns at once, minimum_tenure() bounds how often lead() stands again.
    lead_options& requeue() { requeue_ = true; return *this; }
    /// Once elected, lead() does not resign before this time has passed, even if the body returns earlier: a body with
    /// nothing to do does not make the leadership go round all candidates in a flurry. None by default. If the body
    /// fails or is cancelled, lead() resigns at once. If the leadership is lost after the body has returned, within
    /// that time, the body has completed nevertheless, and does not run again. Throws errc::invalid_argument when the
    /// time is negative.
    lead_options& minimum_tenure(any_duration t);
    /// lead() fails with an exception of the body also when it is condition::retryable or condition::outcome_unknown,
    /// for example when the connection was lost under a commit(). By default such an exception ends the term only.
    lead_options& fail_with_connection() { fail_with_connection_ = true; return *this; }

    /// The body is cancelled this time before the end of a lease that was not renewed, see lock_guard::run(): so it has
    /// this time to end while no other candidate can lead. 0 by default.
    lead_options& stop_margin(any_duration margin) { stop_margin_ = margin; return *this; }

    bool requeues() const noexcept { return requeue_; }
    bool fails_with_connection() const noexcept { return fail_with_connection_; }
    std::chrono::nanoseconds minimum_tenure() const noexcept { return minimum_tenure_; }
    std::chrono::nanoseconds stop_margin() const noexcept { return stop_margin_; }

private:
    bool requeue_ = false, fail_with_connection_ = false;
    std::chrono::nanoseconds minimum_tenure_{0}, stop_margin_{0};
};

}  // namespace zkasio
