#pragma once

#include <chrono>
#include <ctime>

namespace zkasio {

/// CLOCK_BOOTTIME: a steady clock that includes the time for which the system was suspended. Leases and guards use it,
/// because a server's clock runs on during that time.
///
/// A virtual machine that its *host* pauses, moves or restores from a snapshot does not know that it was suspended.
/// Whether the machine's clock includes the pause depends on the hypervisor; if not, a lease seems to be as long as
/// before the pause. Only fencing (lock_guard::token(), lock_guard::commit()) is safe from that.
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
    /// The time when `d` will have passed; time_point::max() if that is out of range. `d` must not be negative.
    static time_point after(duration d) noexcept {
        const time_point begin = now();
        return d > time_point::max() - begin ? time_point::max() : begin + d;
    }
};

/// A duration in any unit, as an argument: `10s`, `std::chrono::milliseconds::max()`. A duration that is too long for
/// nanoseconds becomes the longest one, boot_clock::duration::max(); one that is not a number counts as negative. Where
/// milliseconds are needed, a part of one is taken for a whole one.
class any_duration {
public:
    template <class Rep, class Period>
    constexpr any_duration(std::chrono::duration<Rep, Period> d) noexcept  // implicit: `timeout(10s, ...)`
        : value_(converted(d)) {}
    constexpr operator std::chrono::nanoseconds() const noexcept { return value_; }
    constexpr operator std::chrono::milliseconds() const noexcept {
        using std::chrono::milliseconds;
        return value_ < value_.zero() ? std::chrono::floor<milliseconds>(value_)
                                      : std::chrono::ceil<milliseconds>(value_);
    }

private:
    template <class Rep, class Period>
    static constexpr std::chrono::nanoseconds converted(std::chrono::duration<Rep, Period> d) noexcept {
        using std::chrono::nanoseconds;
        constexpr std::chrono::duration<double> longest = nanoseconds::max();
        const std::chrono::duration<double> seconds = d;
        if (seconds >= longest) return nanoseconds::max();
        if (!(seconds > -longest)) return nanoseconds::min();  // also what is not a number
        return std::chrono::duration_cast<nanoseconds>(d);
    }

    std::chrono::nanoseconds value_;
};

}  // namespace zkasio
