#pragma once

#include <zkasio/export.hpp>

#include <system_error>

namespace zkasio {

/// An object that a recipe keeps once for each session: for example, a queue of the recipe's waiters, which all objects
/// that name the same lock share. Lives on the client's strand, as long as a user keeps it: toolbox::local().
class ZKASIO_EXPORT session_local {
public:
    virtual ~session_local() = default;

    /// The session has ended: errc::session_expired, errc::client_closed, errc::forked or zk_errc::auth_failed. On the
    /// strand.
    virtual void session_over(std::error_code why) noexcept = 0;

    /// client::hand_over() is about to leave the session to another process: removes in the background the nodes that
    /// no user owns. True: there are others, of a contender that waits. On the strand.
    virtual bool waits() noexcept { return false; }

    /// The event loop is being destroyed, and nothing will ever complete: release everything that refers to this
    /// object.
    virtual void loop_over() noexcept {}
};

}  // namespace zkasio
