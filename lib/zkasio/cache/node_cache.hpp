#pragma once

#include <zkasio/cache/cache.hpp>
#include <zkasio/export.hpp>

#include <string>

namespace zkasio {

class node_cache_options : public cache_options<node_cache_options> {
public:
    node_cache_options() {}
};

/// A copy of one node in memory: see cache.
class ZKASIO_EXPORT node_cache : public cache {
public:
    /// @param path need not exist. Throws errc::invalid_path and errc::invalid_argument.
    node_cache(const client& zk, std::string path, node_cache_options options = node_cache_options());

    /// The state that is known at this moment; empty if there is no node.
    cached_node get() const { return view().find(path()); }
    /// As get(), and whether that state is current.
    tree_view snapshot() const { return view(); }
};

}  // namespace zkasio
