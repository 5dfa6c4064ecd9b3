#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

namespace detail {
struct access;
}

/// What operations::add_watch() watches.
enum class watch_mode {
    persistent,  ///< the node, which need not exist, and the names of its children
    recursive,   ///< the node, and all nodes below it, at any depth
};

enum class watched_change {
    created,
    removed,
    data_changed,
    children_changed,  ///< a child was added or removed: only with watch_mode::persistent
    look_again,        ///< anything may have changed: changes may have happened that are not reported
};

struct watched_event {
    watched_change what = watched_change::look_again;
    std::string path;  ///< of the node; with look_again, the path that is watched
    /// Of the transaction that has made the change: node_stat::mzxid of a node that was written, czxid of one that was
    /// created, pzxid of the parent. 0: the server does not say, which ZooKeeper does from 3.9 on; or no change was
    /// reported: with look_again, and with a children_changed that comes because the watch becomes a recursive one.
    std::int64_t zxid = 0;
};

/// The changes of a node, or of a tree, one after another: the result of operations::add_watch(). In contrast to a
/// `watch`, which fires once, it is set once. For all data of a tree, kept up to date, see tree_cache, which is built
/// on the same watch.
///
/// Every change after add_watch() has completed is reported once, in the order in which the servers have made the
/// changes, and before any answer to this client that shows it; or a look_again is reported instead. A look_again
/// comes with each later connection, when a server has set the watch there; when a server has accepted a credential of
/// client::add_auth(); and when more was not read than 256 kB, which it replaces. While a look_again is unread, no
/// further event is kept: whoever reads the nodes after it sees what has happened until then. Servers do not report
/// changes of nodes that this client may not read (from 3.8.4 on).
///
/// With watch_mode::persistent, a children_changed may come without a change, when the watch becomes a recursive one,
/// see below. As long as the stream shares a recursive one, it hears of children that this client may not read only
/// where the servers tell of their changes.
///
/// What it costs: one watch at the server, which all streams and caches of this client at the same path share. The
/// server then tells of each change with about 40 bytes and the path. If both modes are wanted at one path, the server
/// is asked for the recursive one, for all of them, as long as the connection lasts.
///
/// *On session loss*: a stream of a client goes on with the next session. A stream of a session ends with it.
///
/// *Lifetime*: move-only. Destroying a stream removes the watch at the server, in the background, unless another user
/// needs it. The stream does not keep the client open. The awaitables that the members return may be awaited after the
/// stream is destroyed, and keep the watch. A stream that was made without arguments, or moved from, answers
/// errc::invalid_argument, and its path() is empty.
class ZKASIO_EXPORT watch_stream {
public:
    watch_stream() noexcept = default;
    watch_stream(watch_stream&& other) noexcept : use_(std::move(other.use_)) {}
    watch_stream& operator=(watch_stream&& other) noexcept {
        use_ = std::move(other.use_);
        return *this;
    }
    ~watch_stream() = default;

    /// *Completes when* there is an event that was not read yet. Several coroutines may await it: each event is
    /// reported to one of them. From any thread.
    /// *Fails with* zk_errc::unimplemented, once, when a later server refuses the watch, or two connections in a row
    /// have ended when it was asked for, see operations::add_watch(). The stream is silent then, and goes on with the
    /// next connection to a server that sets the watch; where connections have ended, ten minutes later. With
    /// errc::session_expired (a stream of a session, or of a client that opens no other one), errc::client_closed when
    /// the client or the stream is closed, errc::forked, zk_errc::auth_failed: when all earlier events were read, for
    /// good. Not with errc::not_connected: next() waits for a connection, see timeout.hpp.
    /// *Cancellation* ends only the wait: no event is lost. But an event is taken when next() completes: Asio's
    /// `next() || other()` may complete with the result of other() alone although both have completed, and then the
    /// event is lost. For a limit on the time take timeout(), whose result counts.
    asio::awaitable<watched_event> next() const;

    /// Ends the stream; a pending next() fails with errc::client_closed when all events were read.
    /// *Completes when* the watch is removed at the server, or left to others of this client that need it; at once
    /// without a connection, with which the watch has gone. If a busy server refuses to remove it (zk_errc::throttled),
    /// that is asked for again in the background.
    /// *Cancellation* ends only the wait.
    asio::awaitable<void> close() const;

    const std::string& path() const noexcept;

private:
    friend class operations;
    friend struct detail::access;
    struct use;
    explicit watch_stream(std::shared_ptr<use> u) noexcept : use_(std::move(u)) {}

    std::shared_ptr<use> use_;  // the watch is given up with the last of these
};

}  // namespace zkasio
