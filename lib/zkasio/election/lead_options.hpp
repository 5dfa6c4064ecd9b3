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
    /// LeaderSelector::autoRequeue(). Here it concerns that case only: after a loss lead() always stands again.)
    lead_options& requeue() { requeue_ = true; return *this; }
    /// Once elected, do not resign before so much time has passed, even if the body ends earlier by itself: a body with
    /// nothing to do does not make the leadership go round all candidates in a flurry. None by default. A body that
    /// fails resigns at once, and so does one that is cancelled. Throws errc::invalid_argument when it is negative.
    lead_options& minimum_tenure(any_duration t);

    bool requeues() const noexcept { return requeue_; }
    std::chrono::nanoseconds minimum_tenure() const noexcept { return minimum_tenure_; }

private:
    bool requeue_ = false;
    std::chrono::nanoseconds minimum_tenure_{0};
};

}  // namespace zkasio
