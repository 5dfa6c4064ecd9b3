#include <zkasio/detail/session/lease.hpp>

#include <algorithm>
#include <cassert>

namespace zkasio::detail {

void lease::connected(time_point sent, duration session_timeout, duration half_tick, int renewals) {
    const bool shortened = session_timeout < timeout_;
    timeout_ = session_timeout;
    half_tick_ = half_tick > duration::zero() ? half_tick : session_timeout / 4;
    renewals_ = renewals;
    last_write_ = sent;
    count_ = 0;  // these requests may have gone to another server, which may not have reported them
    // The leader sets the end of the session again, also to an earlier time.
    end_ = shortened ? end_if_heard(sent) : std::max(end_, end_if_heard(sent));
}

void lease::answered(time_point sent, time_point answered) {
    // The newest request so far is no longer needed if the one before it is close enough to this one.
    if (count_ >= 2 && sent - recent_[count_ - 2].sent < timeout_ / 16) --count_;
    if (count_ == recent_.size()) {
        std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
        --count_;
    }
    recent_[count_++] = {sent, answered};
    assert(count_ <= recent_.size());
}

void lease::write_answered(time_point sent, time_point answered) {
    last_write_ = sent;
    round_trip_ = answered - sent;
    for (std::size_t i = 0; i < count_; ++i)
        if (recent_[i].answered + report_interval() <= sent) end_ = std::max(end_, end_if_heard(recent_[i].sent));
    this->answered(sent, answered);
}

lease::duration lease::reserve() const noexcept {
    return std::max(timeout_ * 9 / 16 - renewal_interval(), std::min(2 * round_trip_, timeout_ * 5 / 16));
}

lease::time_point lease::heartbeat_due() const noexcept {
    const time_point regular = last_write_ + renewal_interval(), soonest = end_ - reserve();
    if (regular <= soonest) return regular;
    const time_point renewable = renewable_from();
    if (renewable == time_point()) return regular;
    return std::min(regular, std::max(renewable, soonest));
}

lease::time_point lease::renewable_from() const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
        if (end_if_heard(recent_[i].sent) > end_) return recent_[i].answered + report_interval();
    return {};
}

lease::duration half_tick(lease::duration tick, lease::duration asked_for, lease::duration granted) noexcept {
    if (tick <= lease::duration::zero()) return granted / 4;
    return granted > asked_for ? std::max(tick / 2, granted / 4) : tick / 2;
}

}  // namespace zkasio::detail
