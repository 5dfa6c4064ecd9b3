#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/election/leadership.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <utility>
#include <vector>

namespace zkasio {

/// A partition that this member owns, as its body sees it. The owner holds the partition's lock: all that lock_guard
/// says of leases applies here. held() is false before another member can own the partition, as far as a client can
/// know; only token() and commit() are proof. Lives for as long as the body; not to be copied.
class held_partition {
public:
    /// For writers of recipes. @param term of the election whose leader owns the partition; must outlive this object.
    held_partition(std::string name, const leadership& term) : name_(std::move(name)), term_(term) {}
    held_partition(const held_partition&) = delete;
    held_partition& operator=(const held_partition&) = delete;

    const std::string& name() const noexcept { return name_; }

    /// Rises each time that the partition gets an owner, the same or another one.
    fencing_token token() const noexcept { return term_.token(); }
    bool held() const noexcept { return term_.held(); }
    boot_clock::time_point held_until() const noexcept { return term_.held_until(); }

    /// *Completes when* the partition is lost, with the reason. (The body is cancelled then, too.)
    asio::awaitable<loss_reason> lost() const { return term_.lost(); }

    /// Applies the transaction if, and only if, this member still owns the partition when the servers apply the
    /// transaction. See lock_guard::commit().
    asio::awaitable<std::vector<step_result>> commit(transaction steps) const {
        return term_.commit(std::move(steps));
    }

private:
    std::string name_;
    const leadership& term_;
};

}  // namespace zkasio
