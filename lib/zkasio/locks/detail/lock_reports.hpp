#pragma once

#include <zkasio/client.hpp>
#include <zkasio/client_observer.hpp>
#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>

/// The reports of recipes on their locks, for client_observer and client::stats().
namespace zkasio::lock_detail {

/// A contender's wait has ended, with the outcome in `c`.
void report_wait(const session& on, const std::string& lock, contender& c) noexcept;
/// The contender has left, after it was told that it has the lock.
void report_hold(const session& on, const std::string& lock, const contender& c) noexcept;

/// The reports of a claim without a contender: the constructor reports a wait that has just ended, end() the hold.
class reported_hold {
public:
    /// @param lock the lock's path. @param asked when the wait began.
    reported_hold(const session& on, std::string lock, std::int64_t token, boot_clock::time_point asked);
    /// @param how the reason of the session_hold, which has ended. To be called once.
    void end(loss_reason how) const noexcept;

private:
    operations on_;
    std::string lock_;
    std::int64_t token_;
    boot_clock::time_point granted_ = boot_clock::now();
};

/// Runs the attempt, and reports the wait if the attempt ends without a guard.
asio::awaitable<std::optional<lock_guard>> reported(asio::awaitable<std::optional<lock_guard>> attempt, client zk,
                                                    std::string path);

}  // namespace zkasio::lock_detail
