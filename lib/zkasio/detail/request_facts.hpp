#pragma once

#include <zkasio/detail/backend.hpp>

#include <optional>
#include <string>

namespace zkasio::detail {

/// Which watch a request sets, and whether its answer says that it is set.
struct watch_target {
    const std::string* path = nullptr;  ///< null: none
    watch_kind kind = watch_kind::data;
    bool missing_node_counts = false;  ///< it is set, too, when the answer is "no such node" (fact 18)
};
watch_target watch_of(const request& r);

/// Of a removal that depends on other nodes: the one that does not exist, if that is why it was refused.
std::optional<std::string> missing_node(const request& removal, const reply& r);

/// The path of a removal, also of one that depends on other nodes.
std::string removed_path(const request& removal);

/// Whether "no such node" can only mean that the client's own root is missing.
bool is_about_root(const request& r);

}  // namespace zkasio::detail
