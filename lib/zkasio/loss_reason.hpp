#pragma once

#include <string_view>

namespace zkasio {

/// Why a lock, or another object that depends on a session, is no longer held.
enum class loss_reason {
    none,             ///< still held
    released,         ///< given up on purpose
    session_expired,  ///< the session is over
    lease_ended,      ///< no server has confirmed the session in time; the session may be over
    node_deleted,     ///< the node was deleted, or the node of the owner that handed the lock over
    suspended,        ///< the connection was lost, and suspension_policy::lose is set
    closed,           ///< the client was closed
    forked,           ///< this is a child process: the parent process goes on holding
};

/// Whether it is no longer held, and was not given up on purpose.
constexpr bool is_loss(loss_reason r) noexcept { return r != loss_reason::none && r != loss_reason::released; }

constexpr std::string_view to_string(loss_reason r) noexcept {
    switch (r) {
        case loss_reason::none: return "held";
        case loss_reason::released: return "released";
        case loss_reason::session_expired: return "session expired";
        case loss_reason::lease_ended: return "lease ended";
        case loss_reason::node_deleted: return "node deleted";
        case loss_reason::suspended: return "connection lost";
        case loss_reason::closed: return "client closed";
        case loss_reason::forked: return "held by the parent process";
    }
    return "unknown";
}

}  // namespace zkasio
