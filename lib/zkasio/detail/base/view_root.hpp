#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace zkasio::detail {

/// The node below which the paths of a view are, see client::rooted(); null: the client itself. core::keep_root() keeps
/// the string, so it is used with this core only.
using view_root = const std::string*;

std::string path_below(const std::string& root, std::string path);
std::string path_without(const std::string& root, std::string path);

/// A path of the view, as the client itself has it.
inline std::string whole_path(view_root root, std::string path) {
    return root ? path_below(*root, std::move(path)) : path;
}
/// A path as the client itself has it, as the view has it. A path that is not below the root stays whole.
inline std::string shown_path(view_root root, std::string path) {
    return root ? path_without(*root, std::move(path)) : path;
}
inline std::size_t size_of_root(view_root root) noexcept { return root ? root->size() : 0; }

}  // namespace zkasio::detail
