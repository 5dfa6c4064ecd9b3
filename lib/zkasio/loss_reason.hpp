#pragma once

#include <zkasio/export.hpp>

#include <string_view>

namespace zkasio {

/// Why something that depended on a session is not held any more.
enum class loss_reason {
    none,             ///< it is held
    released,         ///< given up on purpose
    session_expired,  ///< the session is over
    lease_ended,      ///< no server has confirmed the session in time; it may be over
    node_deleted,     ///< somebody has deleted the node, or that of the owner who handed the lock over
    suspended,        ///< the connection was lost, and suspension_policy::lose is set
    closed,           ///< the client was closed
    forked,           ///< this is a child process: its parent goes on holding it
};

ZKASIO_EXPORT std::string_view to_string(loss_reason r) noexcept;

}  // namespace zkasio
