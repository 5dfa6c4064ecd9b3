#pragma once

#include <chrono>

namespace zkasio::test {

/// While there is one, time stands still in this process, but for what is passed here: the steady clocks (boot_clock,
/// std::chrono::steady_clock) are its own, and timers of event loops that are used for the first time by then wait for
/// them. (This executable has a clock_gettime() and a timerfd_create() in front of the system's.) For one thread, and
/// loops that are polled.
class virtual_clock {
public:
    virtual_clock();
    ~virtual_clock();
    virtual_clock(const virtual_clock&) = delete;
    virtual_clock& operator=(const virtual_clock&) = delete;

    void pass(std::chrono::nanoseconds time);
    /// Since it began.
    std::chrono::nanoseconds now() const noexcept;
};

}  // namespace zkasio::test
