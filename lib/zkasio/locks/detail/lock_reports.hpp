#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

/// The reports of recipes on their locks, for client_observer and client::stats(), and in the log.
namespace zkasio::lock_detail {

/// Reports the wait of a contender whose acquire has just ended, with the outcome in `c`.
void report_wait(const session& on, const std::string& lock, contender& c) noexcept;
/// Reports the hold of a contender that had the lock and has left the queue.
void report_hold(const session& on, const std::string& lock, const contender& c) noexcept;

/// How long a wait lasts that may be a mistake, before the log names it.
constexpr std::chrono::seconds long_wait{10};
/// Warns of an acquire that has waited so long for a guard of the same client.
void warn_of_guard(const session& on, const std::string& lock, const std::string& node);

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
