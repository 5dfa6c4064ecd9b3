#pragma once

#include <zkasio/cache/streams.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

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
struct node_value;
struct make_view;
}  // namespace cache_detail

/// The state of a node as a cache knew it at some moment. Never changes, is cheap to copy, and may be used on any
/// thread, for any time, also after the cache is destroyed. Empty if there is no node: then data() is empty, and stat()
/// is all zero.
class ZKASIO_EXPORT cached_node {
public:
    cached_node() noexcept = default;
    cached_node(const cached_node& other) noexcept;
    cached_node(cached_node&& other) noexcept;
    cached_node& operator=(cached_node other) noexcept;
    ~cached_node();

    /// Whether there is a node.
    explicit operator bool() const noexcept { return value_ != nullptr; }

    const std::string& data() const noexcept;
    const node_stat& stat() const noexcept;
    /// The object that cache_options::parse() has made of data(); valid as long as this object, or a copy. Null: the
    /// cache has no parser, or its parser returns another type than T or has thrown, or there are no data.
    template <class T>
    const T* parsed() const noexcept {
        const auto* const found = dynamic_cast<const cache_detail::parsed_as<T>*>(parsed_data());
        return found ? &found->value : nullptr;
    }
    /// False: the node exists, but its ACL does not let this client read it. Such a node has no data and no children,
    /// and its stat() may be old or all zero. The cache reads the node again after client::add_auth(), with each
    /// connection, and when the children of its parent change: a change of the node or of its ACL may be noticed only
    /// then. If an ACL change forbids a node that was already read, the cache notices with the next connection only:
    /// until then servers report no change of that node either, see docs/limits.md.
    bool readable() const noexcept;

    /// Whether both are the same state of the same node: not written to, not re-created. (The children may differ.)
    friend bool operator==(const cached_node& a, const cached_node& b) noexcept { return a.is_same(b); }

private:
    bool is_same(const cached_node& other) const noexcept;
    const cache_detail::parsed_value* parsed_data() const noexcept;

    friend struct cache_detail::make_view;
    explicit cached_node(const cache_detail::node_value* value) noexcept;
    const cache_detail::node_value* value_ = nullptr;
};

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
