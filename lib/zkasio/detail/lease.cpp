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

    const bool pings_were_late = stall_to_ != time_point{} && sent < stall_to_ + half_tick;
    extend((pings_were_late ? std::min(sent, stall_from_) : sent) - ping_gap() - half_tick);

    if (count_ > 0 && sent - recent_[count_ - 1].sent < timeout_ / 16) return;
    if (count_ == recent_.size()) {
        std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
        --count_;
    }
    recent_[count_++] = {sent, answered};
}

void lease::stalled(time_point from, time_point to) {
    // A stall that follows closely on another one is one with it.
    if (stall_to_ == time_point{} || from >= stall_to_ + timeout_ / 4) stall_from_ = from;
    stall_to_ = to;
}

}  // namespace zkasio::detail
