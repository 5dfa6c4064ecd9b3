#pragma once

#include <chrono>
#include <ctime>

namespace zkasio {

/// CLOCK_BOOTTIME: steady, and it counts the time that a laptop or a virtual machine was suspended.
/// Leases and guards use it, because a server goes on counting while we sleep.
struct boot_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<boot_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept {
        timespec t{};
        ::clock_gettime(CLOCK_BOOTTIME, &t);
        return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
    }
};

}  // namespace zkasio
