#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/cache/cached_node.hpp>
#include <zkasio/cache/tree_view.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace zkasio {

namespace cache_detail {
class cache_reader;
struct make_view;
}  // namespace cache_detail

/// A node has come (`before` is empty), has another state, or has gone (`after` is empty).
struct node_delta {
    std::string path;
    cached_node before, after;
};

/// What has changed since the last time.
struct cache_update {
    tree_view now;
    /// Whether `changes` does not tell it all: at first; and for a reader that has fallen so far behind that the cache
    /// does not remember what it has missed. Then look at `now`, and nothing that was known before counts.
    bool look_again = false;
    /// From what the reader knows to `now`, in the order in which the cache has seen it. Empty if only
    /// tree_view::current() has changed, or if `look_again`.
    std::vector<node_delta> changes;
};

/// The changes of a cache, from what it knows when the first next() completes: that brings a view with `look_again`.
///
/// After every change of a node there is an update after it; several changes of one node may come as one, for a cache
/// reads a node when it hears that it has changed. A slow reader costs nothing, and hears of it (look_again). One
/// coroutine at a time: a second one is refused with errc::invalid_argument. Any number of streams. What next() returns
/// may be awaited when the stream is gone. One that was moved from fails with errc::invalid_argument.
class ZKASIO_EXPORT cache_changes {
public:
    /// *Completes when* something has changed since the last call, or current() has; at once if it already has; the
    /// first time, when the cache is ready.
    /// *Fails with* errc::client_closed when the cache is closed, or else with what has ended it: see cache::ready().
    /// *Cancellation* ends the wait only.
    asio::awaitable<cache_update> next() const;

private:
    friend struct cache_detail::make_view;
    explicit cache_changes(std::shared_ptr<cache_detail::cache_reader> reader) noexcept : reader_(std::move(reader)) {}
    std::shared_ptr<cache_detail::cache_reader> reader_;
};

}  // namespace zkasio
