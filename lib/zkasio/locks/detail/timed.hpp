#pragma once

#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace zkasio::lock_detail {

/// What a try_acquire_for() or a try_acquire_until() was asked for.
class time_limit {
public:
    /// From now on. May be negative: whoever acquires is told, and not whoever makes this.
    static time_limit after(std::chrono::nanoseconds duration) noexcept;
    static time_limit at(boot_clock::time_point end) noexcept { return time_limit(end, false); }

    boot_clock::time_point end() const noexcept { return end_; }
    bool negative() const noexcept { return negative_; }

private:
    time_limit(boot_clock::time_point end, bool negative) noexcept : end_(end), negative_(negative) {}
    boot_clock::time_point end_;
    bool negative_;
};

/// What lockable::try_acquire_for() and try_acquire_until() do: `attempt`, which waits and is cancelled at the limit;
/// or, when that has passed already, one that does not wait.
/// @param single instead of `attempt` where there is no time: does not go on in another session.
asio::awaitable<std::optional<lock_guard>> acquire_within(client zk, std::string operation, std::string path,
                                                          time_limit limit, lock_attempt attempt,
                                                          lock_attempt single);

}  // namespace zkasio::lock_detail
