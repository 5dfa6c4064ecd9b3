#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zkasio {

/// The state of a client and of its session.
enum class session_state {
    connecting,   ///< no session yet
    connected,
    suspended,    ///< no connection; the session may live
    expired,      ///< the session is over; with session_renewal::automatic `connecting` follows at once
    auth_failed,  ///< a server has refused a credential; final if it is one of client_options::auth()
    closed,       ///< final
};

constexpr std::string_view to_string(session_state s) noexcept {
    switch (s) {
        case session_state::connecting: return "connecting";
        case session_state::connected: return "connected";
        case session_state::suspended: return "suspended";
        case session_state::expired: return "expired";
        case session_state::auth_failed: return "auth_failed";
        case session_state::closed: return "closed";
    }
    return "unknown";
}

struct session_event {
    session_state state = session_state::connecting;
    std::int64_t session_id = 0;
    std::string reason;  ///< the event in words, for a log
};

/// The result of `close()`.
enum class close_result {
    confirmed,  ///< a server has confirmed the end of the session, or there was none: its ephemeral nodes are gone
    session_left_to_expire,  ///< no server has confirmed the end of this session, of one that the client gave up, or of
                             ///< one that the client was about to open: the nodes go when that session times out
};

}  // namespace zkasio
