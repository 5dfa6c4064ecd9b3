#pragma once

#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <string>

namespace zkasio {

namespace cache_detail {
struct node_value;
struct make_view;
}  // namespace cache_detail

/// What a cache knew of a node at some moment: never changes, is cheap to copy, and may be used on any thread, for as
/// long as one likes, also when the cache is gone. Empty where there is no node; then data() is empty, and stat() is
/// all zero.
class ZKASIO_EXPORT cached_node {
public:
    cached_node() noexcept = default;
    cached_node(const cached_node& other) noexcept;
    cached_node(cached_node&& other) noexcept;
    cached_node& operator=(cached_node other) noexcept;
    ~cached_node();

    /// Whether there is one.
    explicit operator bool() const noexcept { return value_ != nullptr; }

    const std::string& data() const noexcept;
    const node_stat& stat() const noexcept;
    /// False: there is a node, and its ACL does not let us read it. Then there are no data and no children, and what
    /// stat() says may be old or all zero. The cache reads the node again after client::add_auth(), with each
    /// connection, and when the children of its parent change: a change of the node or of its ACL may be noticed only
    /// then. An ACL that comes to forbid what was read already is noticed with the next connection only: until then
    /// servers tell of no change of that node either, see docs/limits.md.
    bool readable() const noexcept;

    /// The same state of the same node: nobody has written to it, or made it anew. (Not the same list of children.)
    friend bool operator==(const cached_node& a, const cached_node& b) noexcept { return a.is_same(b); }

private:
    bool is_same(const cached_node& other) const noexcept;

    friend struct cache_detail::make_view;
    explicit cached_node(const cache_detail::node_value* value) noexcept;
    const cache_detail::node_value* value_ = nullptr;
};

}  // namespace zkasio
