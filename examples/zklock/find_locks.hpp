#pragma once

#include "lock_view.hpp"

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace zklock {

/// The locks of a tree.
struct lock_search {
    bool exists = true;                   ///< `path` itself
    std::vector<lock_view> locks;         ///< by path
    std::vector<std::string> unreadable;  ///< paths of what this client may not read, or not all of
    std::size_t looked_at = 0;            ///< nodes
    std::size_t ephemeral = 0;            ///< ephemeral nodes that are no contenders: each may be a lock on one node
};

/// Looks for locks at `path` and below, with some dozens of requests at a time: for directories with contenders, and
/// for semaphores also without. A directory without children may be a free lock, or anything. /zookeeper is left out,
/// unless `path` is in it. Nodes that come and go while the search runs may be missing.
/// *Fails with* zk_errc::no_auth for `path` itself, and as reads do.
asio::awaitable<lock_search> find_locks(zkasio::client zk, std::string path);

}  // namespace zklock
