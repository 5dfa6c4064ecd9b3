#pragma once

#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zkasio {

/// What an observer can say of an election.
enum class leader_state {
    leader,   ///< somebody leads
    nobody,   ///< there is no candidate, or not even a directory
    unknown,  ///< the observer is cut off from the servers: whoever led may lead, or somebody else by now
};

ZKASIO_EXPORT std::string_view to_string(leader_state s) noexcept;

/// Who leads.
struct leader_info {
    std::string path;                 ///< of its node
    std::optional<std::string> data;  ///< what it has proclaimed last, or else its id; nothing: we may not read it
    /// Of a node that we may not read, servers from 3.8.4 on tell no more than its name: then these two are 0.
    std::int64_t session_id = 0;
    fencing_token token;  ///< leadership::token(): rises from one leader to the next
    /// When this observer saw it lead for the first time, by this machine's clock. Servers do not keep that.
    std::chrono::system_clock::time_point since;

    /// All but `since`, which is not the election's but the observer's.
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
