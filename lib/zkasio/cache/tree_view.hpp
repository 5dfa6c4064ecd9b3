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

/// What a cache knew of its tree at some moment: never changes, is cheap to copy, and may be used on any thread without
/// a lock, for as long as one likes, also when the cache is gone.
///
/// Each node is as it was at some moment; two nodes not necessarily as they were at the same moment, as a cache reads
/// them one by one: write what belongs together into one node. Paths are absolute; one that is not the root or below
/// it is not there.
class ZKASIO_EXPORT tree_view {
public:
    /// Of nothing: not ready().
    tree_view() noexcept = default;

    /// Whether the tree was read to its end, once.
    bool ready() const noexcept;
    /// A connection stands, and everything that was there when it began was looked at since. What changes from then on
    /// comes as it happens.
    bool current() const noexcept;
    /// Rises with each view of one cache that differs from the one before.
    std::uint64_t version() const noexcept;

    /// How many nodes there are.
    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }

    /// The node; empty where there is none.
    cached_node find(std::string_view path) const;
    bool contains(std::string_view path) const { return static_cast<bool>(find(path)); }

    /// Of the children of a node, in order; none where it has none, or is not there.
    std::vector<std::string> names(std::string_view path) const;
    /// Calls `f(name, node)` for each child of a node, in the order of their names.
    void for_each_child(std::string_view path,
                        const std::function<void(const std::string& name, const cached_node& node)>& f) const;
    /// Calls `f(path, node)` for each node, a parent in front of its children, which come in the order of their names.
    void for_each(const std::function<void(const std::string& path, const cached_node& node)>& f) const;

private:
    friend struct cache_detail::make_view;
    explicit tree_view(std::shared_ptr<const cache_detail::snapshot> what) noexcept : snapshot_(std::move(what)) {}
    std::shared_ptr<const cache_detail::snapshot> snapshot_;
};

}  // namespace zkasio
