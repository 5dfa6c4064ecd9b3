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

/// What node_cache, children_cache and tree_cache have in common: a copy of some nodes in memory that follows what
/// happens on the servers, from the moment when it is made until it is closed or destroyed.
///
/// A cache is of the client: it outlives sessions. While there is no connection it shows what it knew last, and says
/// that this is not current (tree_view::current()). With the next connection it looks at every node again; a node that
/// was removed and made anew meanwhile shows as removed and added. How far behind the servers it is: a change is here
/// one round trip after the server that this client is connected to has heard of it. It never goes back to an older
/// state of a node than it has shown, also in a new session, which may be with another server.
///
/// Costs two watches of the server for each node, one for an ephemeral one. They are not subject to
/// errc::too_many_watches. All caches and watches of one client share those of the same node.
///
/// *Lifetime*: move-only; closes when destroyed, in the background (client::idle() waits for that). Until then it keeps
/// the client open, and like a guard it must not outlive the execution context of its client. May be used on any
/// thread. Its members return what may be awaited when it is gone. One that was moved from fails with
/// errc::invalid_argument, and its view is empty.
class ZKASIO_EXPORT cache {
public:
    cache(cache&&) noexcept = default;
    cache& operator=(cache&& other) noexcept;
    ~cache();

    /// *Completes when* everything was read once that was there when the connection began, even if the tree changes
    /// faster than it can be read; also when there is no node.
    /// *Fails with* errc::client_closed when the client or this is closed first, errc::forked, zk_errc::auth_failed,
    /// or, of a client that opens no other session, errc::session_expired. A connection that does not come is waited
    /// for: put a deadline around it, see timeout.hpp.
    asio::awaitable<void> ready() const;

    /// The changes from now on, behind a first look at everything.
    cache_changes changes() const;

    /// Ends it: its watches are left. snapshot() goes on showing what was known last.
    /// *Completes when* nothing is left of it on the servers. *Cancellation* ends the wait only.
    asio::awaitable<void> close() const;

    const std::string& path() const noexcept { return path_; }

protected:
    /// What the options of all caches say.
    struct common_options {
        std::size_t remembered_changes, remembered_bytes, reads_at_a_time;
        template <class Options>
        explicit common_options(const Options& o) noexcept
            : remembered_changes(o.remembered_changes()),
              remembered_bytes(o.remembered_bytes()),
              reads_at_a_time(o.reads_at_a_time()) {}
    };
    cache(const client& zk, std::string path, cache_detail::tree_scope scope, common_options options);
    tree_view view() const;

private:
    std::string path_;
    std::shared_ptr<const void> open_;
    std::shared_ptr<cache_detail::cache_engine> engine_;
};

}  // namespace zkasio
