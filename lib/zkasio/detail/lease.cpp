#include <zkasio/detail/lease.hpp>

#include <algorithm>

namespace zkasio::detail {

void lease::extend(time_point heard) noexcept {
    const duration drift = timeout_ / 1000;  // two quartz clocks differ by far less
    end_ = std::max(end_, heard + timeout_ - drift);
}

void lease::connected(time_point sent, duration session_timeout) {
    timeout_ = session_timeout;
    last_answer_ = sent;
    count_ = 0;
    extend(sent);
}

void lease::write_answered(time_point sent, time_point answered) {
    const duration half_tick = timeout_ / 4;
    last_answer_ = answered;

    const write* proven = nullptr;
    for (std::size_t i = 0; i < count_; ++i)
        if (recent_[i].answered + half_tick <= sent && (!proven || recent_[i].sent > proven->sent)) proven = &recent_[i];
    if (proven) extend(proven->sent);

    // Pings were late if the loop stood still less than half a tick before the write, or since.
    time_point pinging_until = sent;
    for (std::size_t i = 0; i < stall_count_; ++i)
        if (sent < stalls_[i].to + half_tick) pinging_until = std::min(pinging_until, stalls_[i].from);
    extend(pinging_until - ping_gap() - half_tick);

    if (count_ > 0 && sent - recent_[count_ - 1].sent < timeout_ / 16) return;
    if (count_ == recent_.size()) {
        std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
        --count_;
    }
    recent_[count_++] = {sent, answered};
}

void lease::stalled(time_point from, time_point to) {
    if (stall_count_ == stalls_.size()) {  // the two oldest become one
        stalls_[1].from = stalls_[0].from;
        std::move(stalls_.begin() + 1, stalls_.end(), stalls_.begin());
        --stall_count_;
    }
    stalls_[stall_count_++] = {from, to};
}

}  // namespace zkasio::detail
