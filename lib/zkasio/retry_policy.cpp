#include <zkasio/retry_policy.hpp>

#include <zkasio/error.hpp>

#include <algorithm>
#include <limits>

namespace zkasio {
namespace {

constexpr int no_limit = std::numeric_limits<int>::max();
constexpr auto for_ever = retry_policy::duration::max();
constexpr retry_policy::duration shortest{1}, longest = std::chrono::hours(24);

}  // namespace

retry_policy::retry_policy(duration base, duration cap, int attempts, duration limit, bool jitter)
    : base_(std::clamp(base, shortest, longest)),
      cap_(std::clamp(cap, shortest, longest)),
      attempts_(attempts),
      limit_(limit),
      jitter_(jitter) {
    if (std::min({base, cap, limit}) < duration::zero() || attempts < 0)
        throw error(errc::invalid_argument, "retry_policy", {}, "pauses, limits and numbers are not negative");
}

retry_policy::retry_policy(duration every) noexcept
    : base_(every), cap_(every), attempts_(no_limit), limit_(for_ever), jitter_(false) {}

retry_policy retry_policy::exponential(any_duration base, any_duration cap, int attempts) {
    return {base, cap, attempts, for_ever, true};
}
retry_policy retry_policy::until_elapsed(any_duration limit, any_duration base, any_duration cap) {
    return {base, cap, no_limit, limit, true};
}
retry_policy retry_policy::n_times(int attempts, any_duration pause) {
    return {pause, pause, attempts, for_ever, false};
}
retry_policy retry_policy::forever(any_duration base, any_duration cap) {
    return {base, cap, no_limit, for_ever, true};
}
retry_policy retry_policy::never() { return {duration(0), duration(0), 0, for_ever, false}; }

std::optional<retry_policy::duration> retry_policy::pause_before(int attempt, duration elapsed, double random) const {
    if (attempt >= attempts_ || elapsed >= limit_) return std::nullopt;
    return std::min(pause(attempt, random), limit_ - elapsed);
}

retry_policy::duration retry_policy::pause(int attempt, double random) const {
    if (attempts_ == 0) return exponential().pause(attempt, random);
    const double doubled = static_cast<double>(base_.count()) * static_cast<double>(1ull << std::min(attempt, 40));
    const double capped = std::min(doubled, static_cast<double>(cap_.count()));
    const double factor = jitter_ ? 0.5 + random : 1.0;
    return std::clamp(duration(static_cast<duration::rep>(capped * factor)), std::min(shortest, base_), longest);
}

}  // namespace zkasio
