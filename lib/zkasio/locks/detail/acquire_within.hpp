#pragma once

#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace zkasio::lock_detail {

/// The time limit of a try_acquire_for() or a try_acquire_until().
class time_limit {
public:
    /// Counts from now. A negative `duration` is refused by acquire_within(), not by this function.
    static time_limit after(std::chrono::nanoseconds duration) noexcept;
    static time_limit at(boot_clock::time_point end) noexcept { return time_limit(end, false); }

    boot_clock::time_point end() const noexcept { return end_; }
    bool negative() const noexcept { return negative_; }

private:
    time_limit(boot_clock::time_point end, bool negative) noexcept : end_(end), negative_(negative) {}
    boot_clock::time_point end_;
    bool negative_;
};

/// Implements lockable::try_acquire_for() and try_acquire_until(). Runs `attempt`, which waits, and cancels it at the
/// limit. If the limit has passed already, runs an attempt that does not wait.
/// @param single runs instead of `attempt` if the limit has passed already; does not go on in another session.
asio::awaitable<std::optional<lock_guard>> acquire_within(client zk, std::string operation, std::string path,
                                                          time_limit limit, lock_attempt attempt,
                                                          lock_attempt single);

}  // namespace zkasio::lock_detail
