#pragma once

#include <zkasio/export.hpp>

#include <string_view>

namespace zkasio {

/// What has become of a persistent_node, as far as its client knows.
enum class persistent_node_state {
    creating,  ///< it is being created, for the first time or anew; or there is no session at the moment
    taken,     ///< its path is taken by a node that is not to be replaced: once that is gone, ours is created
    standing,  ///< it exists
    ended,     ///< it was left, or can never be created again: see persistent_node::ended()
};

ZKASIO_EXPORT std::string_view to_string(persistent_node_state s) noexcept;

}  // namespace zkasio
