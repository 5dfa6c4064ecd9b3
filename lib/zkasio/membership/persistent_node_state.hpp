#pragma once

#include <zkasio/export.hpp>

#include <string_view>

namespace zkasio {

/// The state of a persistent_node, as far as its client knows.
enum class persistent_node_state {
    creating,  ///< the node is being created or re-created; or there is no session at the moment
    taken,     ///< a node that is not to be replaced has the path: when it has gone, ours is created
    standing,  ///< the node exists
    ended,     ///< the node has left, or can never be created again: see persistent_node::ended()
};

ZKASIO_EXPORT std::string_view to_string(persistent_node_state s) noexcept;

}  // namespace zkasio
