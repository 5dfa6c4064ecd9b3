#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_view.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio {

/// The options that all caches share. @tparam Options the options class of the cache, which the setters return.
template <class Options>
class cache_options {
public:
    /// The maximum number of changes that are remembered for slow readers, see cache_update::look_again (1024). At
    /// least 1. A change that all readers of changes() have read is forgotten; without a reader, no change is
    /// remembered.
    Options& remembered_changes(std::size_t n) { remembered_ = n; return self(); }
    /// The maximum size of these changes in bytes: mostly node data before and after the changes (16 MiB).
    Options& remembered_bytes(std::size_t n) { bytes_ = n; return self(); }
    /// The maximum number of reads under way at a time (512). At least 1.
    Options& reads_at_a_time(std::size_t n) { reads_ = n; return self(); }

    /// Makes an object of the data of each node, once whenever the data were read: `f(path, data)` returns any type T,
    /// and cached_node::parsed<T>() shows the object to all readers. For data that are parsed, or decompressed. `f` is
    /// called on the client's strand, and is to be quick: the client does nothing else while it runs. If it throws,
    /// this state of the node has no object. The objects do not count for remembered_bytes().
    template <class Parser>
    Options& parse(Parser&& f) {
        using value = std::invoke_result_t<std::remove_cvref_t<Parser>&, const std::string&, const std::string&>;
        using result = std::shared_ptr<const cache_detail::parsed_value>;
        using function = std::function<value(const std::string&, const std::string&)>;
        parse_ = [make = detail::safe_function<function>(std::forward<Parser>(f))](
                     const std::string& path, const std::string& data) -> result {
            return std::make_shared<const cache_detail::parsed_as<value>>(make(path, data));
        };
        return self();
    }

    const cache_detail::node_parser& parser() const noexcept { return parse_; }
    std::size_t remembered_changes() const noexcept { return remembered_; }
    std::size_t remembered_bytes() const noexcept { return bytes_; }
    std::size_t reads_at_a_time() const noexcept { return reads_; }

protected:
    cache_options() {}
    Options& self() noexcept { return static_cast<Options&>(*this); }

private:
    cache_detail::node_parser parse_;
    std::size_t remembered_ = 1024, bytes_ = 16 * 1024 * 1024, reads_ = 512;
};

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
/// A cache with children costs the server one watch. At servers before ZooKeeper 3.6, and if most changes happen below
/// the depth limit of a tree_cache, each node costs two watches, an ephemeral node one. All caches and watches of one
/// client share the server watches of the same node.
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
