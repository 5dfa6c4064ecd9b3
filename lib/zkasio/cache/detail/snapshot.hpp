#pragma once

#include <zkasio/cache/cache_changes.hpp>
#include <zkasio/cache/cached_node.hpp>
#include <zkasio/cache/detail/directory.hpp>
#include <zkasio/cache/tree_view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace zkasio::cache_detail {

/// The content of a tree_view.
struct snapshot {
    std::shared_ptr<const std::string> root_path;
    ref_ptr<tree_node> root;  // null: there is no root
    std::size_t size = 0;
    std::uint64_t version = 0;
    bool ready = false, current = false;
};

/// Makes the objects that users see.
struct make_view {
    static cached_node node(const value_ptr& value) noexcept { return cached_node(value.get()); }
    static tree_view tree(std::shared_ptr<const snapshot> of) noexcept { return tree_view(std::move(of)); }
    static cache_changes changes(std::shared_ptr<cache_reader> of) noexcept { return cache_changes(std::move(of)); }
};

}  // namespace zkasio::cache_detail
