#pragma once

#include <zkasio/cache/value_stream.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <string>

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

}  // namespace zkasio
