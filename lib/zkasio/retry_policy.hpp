#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <chrono>
#include <optional>

namespace zkasio {
namespace detail {
struct access;
}

/// When to retry an operation after a lost connection. Operations that only read are retried by the client's policy;
/// writes are never retried, because their outcome is unknown.
///
/// A pause is from 1 ms to a day long: a shorter or longer pause is set to the nearer limit. Negative durations and
/// numbers are refused with errc::invalid_argument.
class ZKASIO_EXPORT retry_policy {
public:
    using duration = std::chrono::milliseconds;

    /// base, 2*base, 4*base ... up to `cap`, each multiplied by a random factor in [0.5, 1.5); `attempts` retries.
    static retry_policy exponential(any_duration base = duration(50), any_duration cap = duration(2000),
                                    int attempts = 8);
    /// As exponential(), until `limit` has passed since the first attempt.
    static retry_policy until_elapsed(any_duration limit, any_duration base = duration(50),
                                      any_duration cap = duration(2000));
    /// `attempts` retries, `pause` apart.
    static retry_policy n_times(int attempts, any_duration pause = duration(100));
    /// Retries for as long as the session lives.
    static retry_policy forever(any_duration base = duration(50), any_duration cap = duration(2000));
    static retry_policy never();

    /// How long to pause before retry number `attempt` (0 is the first); nothing when it is time to give up.
    /// @param elapsed since the first attempt; @param random in [0, 1).
    std::optional<duration> pause_before(int attempt, duration elapsed, double random) const;

    /// How long to pause before a retry of an operation that is retried for as long as the session lives: the limits on
    /// the number of attempts and on the time are ignored. A policy without retries, as never(), pauses like
    /// exponential().
    duration pause(int attempt, double random) const;

private:
    friend struct detail::access;
    /// For a simulation, in which no time passes: all pauses are `every` long, also 0.
    explicit retry_policy(duration every) noexcept;
    retry_policy(duration base, duration cap, int attempts, duration limit, bool jitter);

    duration base_, cap_;
    int attempts_;
    duration limit_;
    bool jitter_;
};

}  // namespace zkasio
