#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/cache/cache_changes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace zkasio {

namespace cache_detail {
class cache_engine;
struct tree_scope;
}  // namespace cache_detail

/// The common base of node_cache, children_cache and tree_cache: a copy of some nodes in memory. The copy follows the
/// servers from the construction of the cache until the cache is closed or destroyed.
///
/// A cache belongs to the client and outlives sessions. Without a connection, the cache shows the last known state and
/// marks that state as not current (tree_view::current()). With the next connection, the cache looks at every node
/// again; a node that was removed and re-created in between is shown as removed and added. A change arrives in the
/// cache one round trip after the server that this client is connected to has learned of the change. The cache never
/// goes back to an older state of a node than it has shown, also in a new session, which may be with another server.
///
/// Nodes that an ACL denies this client are read again as long as there are any, at most 100 at a time, after pauses
/// that grow from a second to five minutes: a node that may be read again is shown about as long after that as it was
/// denied.
///
/// Each node costs two watches of the server, an ephemeral node costs one. These watches are not subject to
/// errc::too_many_watches. All caches and watches of one client share the server watches of the same node.
///
/// *Lifetime*: move-only. Destroying a cache closes it, in the background (client::idle() waits for that). Until then
/// the cache keeps the client open, and like a guard it must not outlive the execution context of its client. May be
/// used on any thread. The awaitables that the members return may be awaited after the cache is destroyed. The members
/// of a moved-from cache fail with errc::invalid_argument, and its view is empty.
class ZKASIO_EXPORT cache {
public:
    cache(cache&&) noexcept = default;
    cache& operator=(cache&&) noexcept = default;

    /// *Completes when* every node that existed when the connection began was read once, even if the tree changes
    /// faster than it can be read; also if no node exists.
    /// *Fails with* errc::client_closed if the client or the cache is closed first, errc::forked, zk_errc::auth_failed,
    /// or, for a client that opens no other session, errc::session_expired. Without a connection, ready() waits for
    /// one: put a deadline around ready(), see timeout.hpp.
    asio::awaitable<void> ready() const;

    /// A stream of the changes from now on. Its first update shows the whole tree.
    cache_changes changes() const;

    /// Ends the cache and gives up its watches. snapshot() still returns the last known state.
    /// *Completes when* nothing of the cache is left on the servers.
    /// *Cancellation* ends only the wait.
    asio::awaitable<void> close() const;

    const std::string& path() const noexcept { return path_; }

protected:
    /// The options that all caches share.
    struct common_options {
        std::size_t remembered_changes, remembered_bytes, reads_at_a_time;
        cache_detail::node_parser parser;
        template <class Options>
        explicit common_options(const Options& o)
            : remembered_changes(o.remembered_changes()),
              remembered_bytes(o.remembered_bytes()),
              reads_at_a_time(o.reads_at_a_time()),
              parser(o.parser()) {}
    };
    cache(const client& zk, std::string path, cache_detail::tree_scope scope, common_options options);
    tree_view view() const;

private:
    std::string path_;
    std::shared_ptr<cache_detail::cache_engine> engine_;  // shared with the awaitables that members return
    std::shared_ptr<const void> open_;                    // keeps the client open, and stops the engine when destroyed
};

}  // namespace zkasio
