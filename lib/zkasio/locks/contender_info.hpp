#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/fencing_token.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace zkasio {

/// A contender for a lock: the holder, or one that waits.
struct contender_info {
    std::string path;             ///< of the contender's node
    std::int64_t session_id = 0;  ///< 0: the node is not ephemeral, and stays when its client has gone
    std::string data;             ///< see lock_options::data() and acquire_options::data()
    lock_kind kind = lock_kind::exclusive;
    std::size_t position = 0;     ///< in the order of arrival
    /// Whether the contender holds the lock, as the order of the queue says: the first, and readers up to the first
    /// writer.
    bool holds = false;
    /// lock_guard::token() of a guard that has this node alone: the czxid. (Not the turn of a cohort_mutex.)
    fencing_token token;
    bool revoke_requested = false;          ///< see revoke()
    std::optional<std::string> proclaimed;  ///< see leadership::proclaim()
    std::int64_t created_ms = 0;  ///< of the node, by the server's clock, in milliseconds since 1970

    /// The time since created_ms, if this machine's clock agrees with the server's.
    std::chrono::milliseconds age() const {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::milliseconds>(now) - std::chrono::milliseconds(created_ms);
    }
};

}  // namespace zkasio
