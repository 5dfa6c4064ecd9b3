#pragma once

#include <zkasio/client.hpp>
#include <zkasio/client_observer.hpp>
#include <zkasio/locks/detail/contender.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>

/// What recipes tell client_observer and client::stats() of locks.
namespace zkasio::lock_detail {

/// A contender's wait has ended: `c` knows how.
void report_wait(const session& on, const std::string& lock, contender& c) noexcept;
/// It has left, having been told that it has the lock.
void report_hold(const session& on, const std::string& lock, const contender& c) noexcept;

/// Of a claim that no contender is behind: reports a wait that has ended just now, and in the end a hold.
class reported_hold {
public:
    /// @param lock its path. @param asked when the wait began.
    reported_hold(const session& on, std::string lock, std::int64_t token, boot_clock::time_point asked);
    /// @param how that of the session_hold, which has ended. Once.
    void end(loss_reason how) const noexcept;

private:
    operations on_;
    std::string lock_;
    std::int64_t token_;
    boot_clock::time_point granted_ = boot_clock::now();
};

/// The attempt, which is reported when it ends without a guard.
asio::awaitable<std::optional<lock_guard>> reported(asio::awaitable<std::optional<lock_guard>> attempt, client zk,
                                                    std::string path);

}  // namespace zkasio::lock_detail
