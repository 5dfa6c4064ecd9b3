#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <chrono>

namespace zkasio {

/// What leader_election::lead() does from one term to the next.
class ZKASIO_EXPORT lead_options {
public:
    lead_options() {}
    /// When the body has ended by itself, stand again, behind all who stand already, instead of completing. (Curator's
    /// LeaderSelector::autoRequeue(). Here it concerns that case only: after a loss lead() always stands again.) How
    /// often that happens with a body that ends at once, minimum_tenure() bounds.
    lead_options& requeue() { requeue_ = true; return *this; }
    /// Once elected, do not resign before so much time has passed, even if the body ends earlier by itself: a body with
    /// nothing to do does not make the leadership go round all candidates in a flurry. None by default. A body that
    /// fails resigns at once, and so does one that is cancelled. If the leadership is lost in that time, the body has
    /// completed all the same, and does not run again. Throws errc::invalid_argument when it is negative.
    lead_options& minimum_tenure(any_duration t);
    /// lead() fails with what the body throws also when that is condition::retryable or error::outcome_unknown(): when
    /// the connection was lost under a commit(), say. By default such a failure ends the term only.
    lead_options& fail_with_connection() { fail_with_connection_ = true; return *this; }

    bool requeues() const noexcept { return requeue_; }
    bool fails_with_connection() const noexcept { return fail_with_connection_; }
    std::chrono::nanoseconds minimum_tenure() const noexcept { return minimum_tenure_; }

private:
    bool requeue_ = false, fail_with_connection_ = false;
    std::chrono::nanoseconds minimum_tenure_{0};
};

}  // namespace zkasio
