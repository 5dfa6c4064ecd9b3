#pragma once

#include <zkasio/cache/cached_node.hpp>
#include <zkasio/export.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

namespace cache_detail {
struct snapshot;
struct make_view;
}  // namespace cache_detail

/// The tree as a cache knew it at some moment. Never changes, is cheap to copy, and may be used on any thread without a
/// lock, for any time, also after the cache is destroyed.
///
/// Each node is shown as it was at some moment. Two nodes may be shown as they were at different moments, because a
/// cache reads nodes one by one: write data that belong together into one node. Paths are absolute. A path that is
/// neither the root nor below it has no node.
class ZKASIO_EXPORT tree_view {
public:
    /// An empty view: not ready().
    tree_view() noexcept = default;

    /// Whether the whole tree was read, once.
    bool ready() const noexcept;
    /// True: there is a connection, and every node that existed when the connection began was looked at since. Later
    /// changes are shown as they happen.
    bool current() const noexcept;
    /// Rises with each view of one cache that differs from the previous view.
    std::uint64_t version() const noexcept;

    /// The number of nodes.
    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }

    /// The node at this path; empty if there is none.
    cached_node find(std::string_view path) const;
    bool contains(std::string_view path) const { return static_cast<bool>(find(path)); }

    /// The names of the children of a node, sorted; empty if the node has none or does not exist.
    std::vector<std::string> names(std::string_view path) const;
    /// Calls `f(name, node)` for each child of a node, in the order of their names.
    void for_each_child(std::string_view path,
                        const std::function<void(const std::string& name, const cached_node& node)>& f) const;
    /// Calls `f(path, node)` for each node: a parent before its children, children in the order of their names.
    void for_each(const std::function<void(const std::string& path, const cached_node& node)>& f) const;

private:
    friend struct cache_detail::make_view;
    explicit tree_view(std::shared_ptr<const cache_detail::snapshot> what) noexcept : snapshot_(std::move(what)) {}
    std::shared_ptr<const cache_detail::snapshot> snapshot_;
};

}  // namespace zkasio
