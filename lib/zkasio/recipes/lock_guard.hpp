#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/session.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zkasio {

/// A number that rises with every grant of a lock, over the whole ensemble and for ever. Send it along with what the lock
/// protects, and let the receiver refuse smaller ones: then a holder that was paused and has lost the lock without
/// noticing does no harm. It is the czxid of the lock's node.
class fencing_token {
public:
    explicit fencing_token(std::int64_t value) noexcept : value_(value) {}
    std::int64_t value() const noexcept { return value_; }
    friend auto operator<=>(const fencing_token&, const fencing_token&) = default;

private:
    std::int64_t value_;
};

/// A lock that is held. Move-only; releases when destroyed.
///
/// Ownership is a lease. `held()` says no before anybody else can get the lock, as far as a client can know; only
/// token() and commit() are proof. May be used from any executor; `held()`, `held_until()` from any thread.
class lock_guard {
public:
    lock_guard(session on, session_hold hold, std::string path, fencing_token token)
        : on_(std::move(on)), hold_(std::move(hold)), path_(std::move(path)), token_(token) {}
    lock_guard(lock_guard&&) noexcept = default;
    lock_guard& operator=(lock_guard&& other) noexcept;
    ~lock_guard() { give_up(); }

    fencing_token token() const noexcept { return token_; }
    const std::string& path() const noexcept { return path_; }  ///< of the lock's node

    bool held() const noexcept { return hold_.held(); }
    boot_clock::time_point held_until() const noexcept { return hold_.held_until(); }
    loss_reason reason() const noexcept { return hold_.reason(); }  ///< loss_reason::none while nothing is wrong

    /// *Completes when* the lock is lost or released, with the reason.
    asio::awaitable<loss_reason> lost() const { return hold_.lost(); }

    /// Applies the transaction if, and only if, the lock is still ours when the servers apply it: the lock's node is
    /// checked in front of its steps.
    /// *Fails with* errc::lock_lost, and else as operations::multi().
    asio::awaitable<std::vector<step_result>> commit(transaction steps) const;

    /// Runs `body` until it ends; when the lock is lost it receives a terminal cancellation, and when it has really
    /// ended, this throws errc::lock_lost. The lock is not released.
    asio::awaitable<void> run(std::function<asio::awaitable<void>()> body) const;

    /// Gives the lock up; from the call on, held() is false.
    /// *Completes when* the server has removed the node, or the session (and with it the node) is over.
    /// *Cancellation*: ends the wait; the release goes on. A second call does nothing.
    asio::awaitable<void> release();

private:
    std::optional<pending_removal> give_up() noexcept;

    session on_;
    session_hold hold_;
    std::string path_;  // empty: given up, or moved from
    fencing_token token_;
};

}  // namespace zkasio
