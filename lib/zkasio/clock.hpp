#pragma once

#include <chrono>
#include <ctime>

namespace zkasio {

/// CLOCK_BOOTTIME: steady, and it counts the time for which the system was suspended.
/// Leases and guards use it, because a server goes on counting while we sleep.
///
/// A virtual machine that its *host* pauses, moves or restores from a snapshot does not know that it was suspended.
/// Whether its clock has gone on meanwhile depends on the hypervisor; where it has not, a lease seems to be as long as
/// before. Only fencing (lock_guard::token(), lock_guard::commit()) is safe from that.
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
    /// When `d` has passed, which is not negative; time_point::max() when that is never.
    static time_point after(duration d) noexcept {
        const time_point begin = now();
        return d > time_point::max() - begin ? time_point::max() : begin + d;
    }
};

}  // namespace zkasio
