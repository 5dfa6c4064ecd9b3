#pragma once

#include <zkasio/clock.hpp>

#include <chrono>
#include <cstdint>

namespace zkasio::discovery_detail {

/// When an instance is ejected because of failures, and for how long.
struct ejection_policy {
    std::uint16_t failures = 2;  ///< 0: never
    std::chrono::milliseconds time{30'000};
    std::chrono::milliseconds (*now)() noexcept = &boot_time;

    static std::chrono::milliseconds boot_time() noexcept {
        return std::chrono::duration_cast<std::chrono::milliseconds>(boot_clock::now().time_since_epoch());
    }
};

/// The failures of one instance, in one word that a reader loads at once. The rules:
///
///   - F1: the first failure begins a record. A failure that comes `time` or more after that begins a new record.
///   - F2: with the failure that brings the count to policy.failures, the instance is ejected for `time`.
///   - F3: while the instance is ejected, further failures do not count: these uses began before the ejection.
///   - F4: when the time is over, the record is no longer valid.
class failure_record {
public:
    constexpr failure_record() noexcept = default;
    constexpr explicit failure_record(std::uint64_t word) noexcept : word_(word) {}
    constexpr std::uint64_t word() const noexcept { return word_; }

    /// False: the instance is certainly not ejected. True: see ejected(), which also looks at the time.
    constexpr bool may_be_ejected(const ejection_policy& p) const noexcept {
        return p.failures != 0 && count() >= p.failures;
    }
    constexpr bool ejected(const ejection_policy& p, std::chrono::milliseconds now) const noexcept {
        return may_be_ejected(p) && !is_over(p, now);
    }
    constexpr failure_record after_failure(const ejection_policy& p, std::chrono::milliseconds now) const noexcept {
        if (p.failures == 0) return {};
        if (ejected(p, now)) return *this;
        const std::uint64_t counted = count() == 0 || is_over(p, now) ? 1 : count() + 1;
        return {counted == 1 || counted >= p.failures ? now : since(), counted};
    }

private:
    constexpr failure_record(std::chrono::milliseconds since, std::uint64_t count) noexcept
        : word_(static_cast<std::uint64_t>(since.count()) << 16 | count) {}
    constexpr std::uint64_t count() const noexcept { return word_ & 0xffff; }
    constexpr std::chrono::milliseconds since() const noexcept {
        return std::chrono::milliseconds(static_cast<std::int64_t>(word_ >> 16));
    }
    constexpr bool is_over(const ejection_policy& p, std::chrono::milliseconds now) const noexcept {
        return now - since() >= p.time;
    }

    std::uint64_t word_ = 0;  // the number of failures (lower 16 bits), and since when
};

}  // namespace zkasio::discovery_detail
