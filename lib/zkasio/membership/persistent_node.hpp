#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/persistent_node_options.hpp>
#include <zkasio/membership/persistent_node_state.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

namespace zkasio {

namespace membership_detail {
class node_owner;
}

/// A node that stands for as long as this object lives: it is created at once, in the background, again when somebody
/// has removed it or its parent, and again in each new session. What a member of a group shows that it is here with.
///
/// What may stand at the path already:
///   - An ephemeral node of this very session (a resumed one) is ours.
///   - One of a session that this client has given up, with no server in reach, and that lives after all, is replaced.
///   - One that another session owns is never removed by us: it may be somebody else who does the same. We wait until
///     it is gone (persistent_node_state::taken). If that is what a process that has crashed left behind, the server
///     removes it when its session expires. The same when the node there is ephemeral and ours is not to be, or the
///     other way round.
///   - If ours is not ephemeral, a node there that is none either is taken over: our data are written into it. Its mode
///     and its ACL stay as they are.
///
/// A sequential node keeps the name that it got first; only if that is taken when it has to be created anew, it gets
/// another one.
///
/// Data that somebody else writes into the node stay until set_data(), or until the node has to be created anew.
///
/// A node with a time to live stands while this object lives, and goes some time after the process has died, as
/// Curator's PersistentTtlNode: twice in its time to live, the data that the node has are written into it again. So its
/// version rises, and its watches fire. Without the permission to read and write it, the server removes the node each
/// time, and it is created again.
///
/// That the connection is lost, that there is no server, that one has too much to do: it is tried again, after the
/// pauses of client_options::retry(). What no later attempt can mend ends it, see ended().
///
/// *Lifetime*: move-only. When destroyed it leaves in the background, see leave(); client::idle() waits for that. Until
/// it has left, it keeps the client open, and like a guard it must not outlive the execution context of its client. May
/// be used on any thread. Its members return what may be awaited when it is gone: it has left by then. One that was
/// made without arguments, or moved from, fails with errc::invalid_argument; its state is persistent_node_state::ended,
/// and leave() does nothing.
class ZKASIO_EXPORT persistent_node {
public:
    persistent_node() noexcept = default;
    /// Throws errc::invalid_path, also for "/", and errc::invalid_argument for a client that was moved from.
    /// @param data with which it is created each time, until set_data() has given it others.
    persistent_node(client zk, std::string path, bytes data = bytes(),
                    persistent_node_options options = persistent_node_options());
    persistent_node(persistent_node&&) noexcept = default;
    persistent_node& operator=(persistent_node&&) noexcept = default;

    /// *Completes when* the node stands, at once if it does, with its path: that of a sequential one has its number. As
    /// state() this tells what was known last: that somebody has removed the node, or that the session has expired, may
    /// be on its way, and while there is no connection nothing is heard of it. Nor is it in a child process whose loop
    /// does not run.
    /// *Fails with* errc::client_closed once leave() was called, else as ended(). *Cancellation* ends the wait only.
    asio::awaitable<std::string> created() const;

    /// Writes `data` into the node; it is created with them from then on. While there is none, it is created with them.
    /// Of several calls at a time the last one counts.
    /// *Completes when* a server has confirmed that the node has these data, or those of a later call.
    /// *Fails with* errc::too_large at once, when a request has no room for them; with what else set() fails with and
    /// is not condition::retryable: the node stands as before, and all calls that wait fail. As created() when the node
    /// ends first. *Cancellation* ends the wait only: the data are written all the
    /// same.
    asio::awaitable<void> set_data(bytes data) const;

    /// See created().
    persistent_node_state state() const noexcept;

    /// *Completes when* the state is another one than `known`, or the last one; with that. A slow reader hears
    /// of the newest state only. *Fails with* errc::client_closed and errc::forked. *Cancellation* ends the wait only.
    asio::awaitable<persistent_node_state> state_after(persistent_node_state known) const;

    /// *Completes when* it has left: leave() was called, or this was destroyed, and it is done.
    /// *Fails with* what has ended it otherwise: errc::client_closed, errc::forked, zk_errc::auth_failed; with
    /// session_renewal::none errc::session_expired; or what the servers refuse for good: zk_errc::no_auth,
    /// zk_errc::invalid_acl, zk_errc::no_children_for_ephemerals, errc::too_large, zk_errc::no_node with
    /// missing_parents::fail or when the chroot is missing, and others. The message names this node, and says what was
    /// refused. *Cancellation* ends the wait only.
    asio::awaitable<void> ended() const;

    /// Removes the node, and does not create it again; from the call on. A node that is not ours is not touched, and
    /// one that is not ephemeral and has children stays. Whose node it is, is asked right before: if ours is removed by
    /// others, and theirs created, between that question and the removal, which needs the same version, theirs goes.
    /// *Completes when* a server has confirmed that the node is gone, also when the create was still under way, or when
    /// the session that owned it is over. With no connection it waits for one.
    /// *Fails with* what the removal fails with, zk_errc::no_auth for one, and what ends the client first.
    /// *Cancellation* ends the wait: it goes on in the background. A second call waits for the same.
    asio::awaitable<void> leave() const;

    /// The path that was asked for.
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
    std::shared_ptr<membership_detail::node_owner> owner_;
};

}  // namespace zkasio
