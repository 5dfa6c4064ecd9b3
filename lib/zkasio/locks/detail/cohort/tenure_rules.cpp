#include <zkasio/locks/detail/cohort/tenure_rules.hpp>

namespace zkasio::lock_detail {

tenure_step next_tenure_step(const tenure_limits& limits, const tenure& now) noexcept {
    const bool wanted_elsewhere = now.asked_back || now.others == other_contenders::waiting;
    if (!now.has_waiters) {
        if (wanted_elsewhere || limits.linger <= std::chrono::nanoseconds::zero())
            return tenure_step::give_back;  // T3, T4, T5
        return tenure_step::linger;         // T4
    }
    if (now.asked_back) return tenure_step::queue_again;  // T5
    const bool at_limit = now.turns >= limits.turns || (now.turns > 0 && now.age >= limits.tenure);
    if (!at_limit || now.others == other_contenders::none) return tenure_step::grant;                        // T1
    return now.others == other_contenders::unknown ? tenure_step::wait_for_look : tenure_step::queue_again;  // T1, T2
}

bool must_look(const tenure& now) noexcept {
    return now.others == other_contenders::unknown && now.turns > 0 && now.has_waiters;
}

}  // namespace zkasio::lock_detail
