#include <zkasio/locks/detail/cohort/tenure_rules.hpp>

#include <algorithm>

namespace zkasio::lock_detail {
namespace {

bool is_to_be_looked_up(const tenure& now) noexcept {
    return now.others == other_contenders::unknown || (now.others == other_contenders::expected && now.first_tries);
}

}  // namespace

tenure_step next_tenure_step(const tenure_limits& limits, const tenure& now) noexcept {
    const bool wanted_elsewhere = now.asked_back || now.others == other_contenders::waiting;
    if (!now.has_waiters) {
        if (wanted_elsewhere || now.tried || limits.linger <= std::chrono::nanoseconds::zero())
            return tenure_step::give_back;  // T3, T4, T5, T6
        return tenure_step::linger;         // T4
    }
    if (now.asked_back) return tenure_step::queue_again;  // T5
    const bool at_limit = now.turns >= limits.turns || (now.turns > 0 && now.age >= limits.tenure);
    if (!at_limit || now.others == other_contenders::none) return tenure_step::grant;  // T1
    return is_to_be_looked_up(now) ? tenure_step::wait_for_look : tenure_step::queue_again;  // T1, T2
}

// Not a time at which it ends, which the clock does not have for the longest durations.
std::chrono::nanoseconds linger_left(const tenure_limits& limits, std::chrono::nanoseconds idle) noexcept {
    return limits.linger - std::max(idle, std::chrono::nanoseconds::zero());
}

bool must_look(const tenure& now) noexcept {
    return is_to_be_looked_up(now) && now.turns > 0 && now.has_waiters;
}

}  // namespace zkasio::lock_detail
