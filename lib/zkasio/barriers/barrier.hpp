#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <utility>

namespace zkasio {

class ZKASIO_EXPORT barrier_options {
public:
    barrier_options() {}
    /// The ACL of the node, and of parents created with it (client_options::default_acl()).
    barrier_options& acl(zkasio::acl entries) {
        acl_ = std::move(entries);
        return *this;
    }
    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    zkasio::acl acl_ = default_acl();
};

/// A gate for any number of processes: closed as long as a node exists. Shared with Curator's DistributedBarrier and
/// kazoo's Barrier. The node is persistent: a gate stays closed when the process that has closed it ends.
///
/// May be used from any executor. Copies name the same barrier. The awaitables of the members may be awaited when the
/// object is gone. A moved-from barrier fails with errc::invalid_argument.
class ZKASIO_EXPORT barrier {
public:
    /// Throws errc::invalid_path.
    barrier(client zk, std::string path, barrier_options options = barrier_options());

    /// Closes the barrier. The node's parents are created when they are missing.
    /// *Completes with* true if this call has closed the barrier, false if it was closed; also when answers are lost:
    /// the node's data tell which call has created it. If an answer is lost and the barrier is opened before the
    /// request is repeated, this call closes the barrier a second time.
    /// *Fails with* the errors of operations::create(). A call with error::outcome_unknown() may have closed the
    /// barrier.
    /// *Cancellation*: see error::outcome_unknown().
    asio::awaitable<bool> set() const;

    /// Opens the barrier, and wakes all who wait.
    /// *Completes with* whether the barrier was closed, as far as known: false also if the removal was repeated because
    /// its answer was lost. The barrier is certain to be open then, or closed again by another client.
    /// *Fails with* zk_errc::no_auth and zk_errc::not_empty; when there is no connection at first, as operations do.
    /// *Cancellation*: ends the wait; the removal goes on.
    asio::awaitable<bool> remove() const;

    /// *Completes with* whether the barrier is closed, as the server of this client knows it.
    asio::awaitable<bool> is_set() const;

    /// *Completes when* the barrier is open, as the server of this client knows it (after sync(), it knows of a barrier
    /// that another client has just closed), or has been open since this client first saw the node: also if the barrier
    /// is closed again at once, or opened and closed while the connection is lost. Over connections and sessions. For a
    /// limit see timeout.hpp.
    /// *Fails with* errc::client_closed, errc::forked, zk_errc::auth_failed, and errc::session_expired for a client
    /// that opens no other session. A client that may not read the node (zk_errc::no_auth) waits, as the node exists.
    /// *Cancellation*: ends the wait.
    asio::awaitable<void> wait() const;

    const std::string& path() const noexcept { return path_; }

private:
    client zk_;
    std::string path_;
    barrier_options options_;
};

}  // namespace zkasio
