#pragma once

#include <zkasio/clock.hpp>

#include <optional>

namespace zkasio::lock_detail {

/// Told of a contender that serves others, see acquire_request::user.
class place_user {
public:
    virtual ~place_user() = default;
    /// The acquire is decided: ask queue_claim::granted(). On the strand, in a turn of its own.
    virtual void decided() noexcept = 0;
    /// Another client or an operator has asked for the lock back. On the strand.
    virtual void asked_back() noexcept = 0;
    /// A try_acquire() of this session was refused because of the contender, an owner. On the strand, in a turn of its
    /// own.
    virtual void tried() noexcept = 0;
    /// Since when one guard has had the lock of the contender, an owner, if no body runs under that guard. On the
    /// strand.
    virtual std::optional<boot_clock::time_point> idle_guard_since() const noexcept = 0;
};

}  // namespace zkasio::lock_detail
