#pragma once

#include <zkasio/export.hpp>

#include <system_error>

namespace zkasio {

/// What a recipe keeps once for each session: a queue of its own waiters, say, which all objects that name the same
/// lock share. Lives on the client's strand and as long as somebody else holds it, see toolbox::local().
class ZKASIO_EXPORT session_local {
public:
    virtual ~session_local() = default;

    /// The session has ended: errc::session_expired, errc::client_closed, errc::forked or zk_errc::auth_failed. On the
    /// strand.
    virtual void session_over(std::error_code why) noexcept = 0;

    /// The event loop is being destroyed, and nothing will ever complete: let go of whatever refers back to this.
    virtual void loop_over() noexcept {}
};

}  // namespace zkasio
