#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zklock {

/// A session with ephemeral nodes.
struct session_cost {
    std::size_t ephemerals = 0;
    std::size_t end_bytes = 48;  ///< of the transaction that ends it, as far as its nodes are known
};

/// A node with children.
struct directory_cost {
    std::string path;
    std::size_t children = 0, list_bytes = 0;  ///< `list_bytes`: the answer to each listing
};

/// What stands in a tree.
struct tree_cost {
    std::size_t nodes = 0, ephemerals = 0, data_bytes = 0;
    std::string largest_node;
    std::size_t largest_node_bytes = 0;
    std::map<std::int64_t, session_cost> sessions;
    std::vector<directory_cost> directories;  ///< those with the most children come first
    std::vector<std::string> unreadable;      ///< nodes whose children this client may not list
};

/// Looks at `path` and all nodes below, with one request for each node and one for each directory, up to 256 at a time.
/// No data is read. /zookeeper is left out, unless `path` is in it. Nodes that come and go meanwhile may be missing.
/// @param chroot of the client: it is a part of the paths as servers have them.
/// *Fails with* zk_errc::no_node and zk_errc::no_auth for `path` itself, and as reads do.
asio::awaitable<tree_cost> cost_of_tree(zkasio::client zk, std::string path, std::string chroot);

}  // namespace zklock
