#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/cache/cached_node.hpp>
#include <zkasio/cache/tree_view.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace zkasio {

namespace cache_detail {
class cache_reader;
struct make_view;
}  // namespace cache_detail

/// One change: a node was added (`before` is empty), has another state, or was removed (`after` is empty).
struct node_delta {
    std::string path;
    cached_node before, after;

    /// node_change::created, removed, or data_changed. A node that was removed and re-created is two changes.
    node_change kind() const noexcept {
        return !before ? node_change::created : after ? node_change::data_changed : node_change::removed;
    }
};

/// The changes since the previous update.
struct cache_update {
    tree_view now;
    /// True: `changes` is not complete. This is so in the first update, and if the reader has fallen so far behind that
    /// the cache no longer remembers the changes that the reader has missed. Then look at `now`, and discard everything
    /// that was known before.
    bool look_again = false;
    /// The changes from the reader's previous state to `now`, in the order in which the cache has seen them. Empty if
    /// only tree_view::current() has changed, or if `look_again`.
    std::vector<node_delta> changes;
};

/// The changes of a cache, beginning with the state that the cache knows when the first next() completes: the first
/// update shows that state, with `look_again`.
///
/// Every change of a node is followed by an update that is at least as new. Several changes of one node may be reported
/// as one, because the cache reads a node after it was told of a change. A slow reader costs nothing, and is told that
/// it has missed changes (look_again). One coroutine at a time may await next(): a second one is refused with
/// errc::invalid_argument. A cache may have any number of streams. The awaitable that next() returns may be awaited
/// after the stream is destroyed. A moved-from stream fails with errc::invalid_argument.
class ZKASIO_EXPORT cache_changes {
public:
    /// *Completes when* a node or current() has changed since the last call; at once if it already has. The first call
    /// completes when the cache is ready.
    /// *Fails with* errc::client_closed when the cache is closed, otherwise with the error that has ended the cache:
    /// see cache::ready().
    /// *Cancellation* ends only the wait.
    asio::awaitable<cache_update> next() const;

private:
    friend struct cache_detail::make_view;
    explicit cache_changes(std::shared_ptr<cache_detail::cache_reader> reader) noexcept : reader_(std::move(reader)) {}
    std::shared_ptr<cache_detail::cache_reader> reader_;
};

}  // namespace zkasio
