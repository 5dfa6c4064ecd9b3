#pragma once

#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zkasio {

/// Whether an election has a leader, as far as an observer knows.
enum class leader_state {
    leader,   ///< there is a leader
    nobody,   ///< there is no candidate, or not even a directory
    unknown,  ///< the observer is cut off from the servers: the last leader may still lead, or another one
};

ZKASIO_EXPORT std::string_view to_string(leader_state s) noexcept;

/// The leader of an election.
struct leader_info {
    std::string path;                 ///< of the leader's node
    std::optional<std::string> data;  ///< proclaimed last, or else the id; nothing: this client may not read the node
    /// If this client may not read the node, servers from 3.8.4 on tell only its name: session_id and token are 0.
    std::int64_t session_id = 0;
    fencing_token token;  ///< leadership::token(): rises from one leader to the next
    /// When this observer first saw the leader lead, by this machine's clock. Servers do not keep that time.
    std::chrono::system_clock::time_point since;

    /// Compares all but `since`, which is a property of the observer and not of the election.
    friend bool operator==(const leader_info& a, const leader_info& b) {
        return a.path == b.path && a.data == b.data && a.session_id == b.session_id && a.token == b.token;
    }
};

/// The state of an election at one moment, as an observer tells it.
struct leader_view {
    leader_state state = leader_state::unknown;
    std::optional<leader_info> leader;  ///< with leader_state::leader

    friend bool operator==(const leader_view&, const leader_view&) = default;
};

}  // namespace zkasio
