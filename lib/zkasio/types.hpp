#pragma once

#include <zkasio/export.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace zkasio {

/// The largest request that a server accepts (jute.maxbuffer): path, data and ACL together, in bytes.
inline constexpr std::size_t max_request_bytes = 1024 * 1024 - 1024;

/// The metadata of a node. Times are those of the server's clock, in milliseconds since 1970.
struct node_stat {
    std::int64_t czxid = 0;           ///< transaction that created the node; rises over the whole ensemble
    std::int64_t mzxid = 0;           ///< transaction that last changed its data
    std::int64_t pzxid = 0;           ///< transaction that last changed its list of children
    std::int64_t ctime = 0;           ///< created at
    std::int64_t mtime = 0;           ///< data changed at
    std::int64_t ephemeral_owner = 0; ///< session id of the owner, see is_ephemeral()
    std::int32_t version = 0;         ///< changes of the data
    std::int32_t cversion = 0;        ///< changes of the list of children
    std::int32_t aversion = 0;        ///< changes of the ACL
    std::int32_t data_length = 0;     ///< in bytes
    std::int32_t num_children = 0;

    /// Whether the node ends with a session. (The owners by which servers mark containers and nodes with a time to live
    /// are no sessions: EphemeralType. ZooKeeper 3.8 reports 0 for both. The mark of a time to live has 0xff0000 above
    /// its 40 bits of milliseconds. The sessions of server 255 begin with 0xff, too, with bits of the time below.)
    constexpr bool is_ephemeral() const noexcept {
        constexpr std::int64_t container = std::numeric_limits<std::int64_t>::min();
        const bool has_ttl = static_cast<std::uint64_t>(ephemeral_owner) >> 40 == 0xff'0000;
        return ephemeral_owner != 0 && ephemeral_owner != container && !has_ttl;
    }

    friend bool operator==(const node_stat&, const node_stat&) = default;
};

/// The change of a node that a watch reports.
enum class node_change { created, removed, data_changed, children_changed };

/// A version that matches every version, for `set` and `remove`.
inline constexpr std::int32_t any_version = -1;

/// The kinds of nodes.
enum class create_mode {
    persistent,
    ephemeral,              ///< removed by the server when the session ends
    persistent_sequential,  ///< the server appends ten digits that rise for each parent
    ephemeral_sequential,
    container,                  ///< removed by the server some time after its last child is gone
    persistent_ttl,             ///< removed by the server when unchanged and childless for `ttl`
    persistent_sequential_ttl,  ///< needs `zookeeper.extendedTypesEnabled` on the server, as does the one above
};

constexpr bool is_sequential(create_mode m) noexcept {
    return m == create_mode::persistent_sequential || m == create_mode::ephemeral_sequential ||
           m == create_mode::persistent_sequential_ttl;
}

constexpr bool is_ephemeral(create_mode m) noexcept {
    return m == create_mode::ephemeral || m == create_mode::ephemeral_sequential;
}

constexpr bool has_ttl(create_mode m) noexcept {
    return m == create_mode::persistent_ttl || m == create_mode::persistent_sequential_ttl;
}

/// A node that was just created: its path (with the sequence number, where there is one) and its stat.
struct ZKASIO_EXPORT created {
    std::string path;
    node_stat stat;
};

struct ZKASIO_EXPORT node_data {
    std::string data;
    node_stat stat;
};

struct ZKASIO_EXPORT node_children {
    std::vector<std::string> names;  ///< names, not paths, in no particular order
    node_stat stat;                ///< of the parent
};

}  // namespace zkasio
