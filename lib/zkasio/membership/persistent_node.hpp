#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio {

/// How a persistent_node is created, each time.
class persistent_node_options {
public:
    persistent_node_options() {}  // user-provided: g++ 12 destroys aggregate temporaries of a co_await expression twice

    /// Any mode (create_mode::ephemeral). A sequential node always gets a protected name, "_c_<uuid>-name0000000007":
    /// without such a name the node could not be found again when the answer to its create is lost.
    persistent_node_options& mode(create_mode m) { mode_ = m; return *this; }
    /// For the modes with a time to live: how long the node stays when no client keeps it, see create_options::ttl().
    /// Use a second or more: the node is written to twice in that time, and ten times a second at most.
    persistent_node_options& ttl(any_duration t) { ttl_ = t; return *this; }
    /// The ACL of the node and of parents created with it (client_options::default_acl()).
    persistent_node_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }
    /// How missing parents are treated (missing_parents::create_container).
    persistent_node_options& parents(missing_parents p) { parents_ = p; return *this; }

    create_mode mode() const noexcept { return mode_; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    missing_parents parents() const noexcept { return parents_; }

private:
    create_mode mode_ = create_mode::ephemeral;
    std::chrono::milliseconds ttl_{0};
    zkasio::acl acl_ = default_acl();
    missing_parents parents_ = missing_parents::create_container;
};

/// The state of a persistent_node, as far as its client knows.
enum class persistent_node_state {
    creating,  ///< the node is being created or re-created; or there is no session at the moment
    taken,     ///< a node that is not to be replaced has the path: when it has gone, ours is created
    standing,  ///< the node exists
    ended,     ///< the node has left, or can never be created again: see persistent_node::ended()
};

ZKASIO_EXPORT std::string_view to_string(persistent_node_state s) noexcept;

namespace membership_detail {
class node_owner;
}

/// A node that stands for as long as this object lives. The node is created at once, in the background. With such a
/// node, a member of a group shows that it is there.
///
/// There may be a node at the path already (ours is the one that this object keeps):
///
/// | the node at the path                       | what happens                                           | state()    |
/// |--------------------------------------------|--------------------------------------------------------|------------|
/// | none                                       | it is created                                          | standing   |
/// | ephemeral, of this very session (a resumed | it is ours                                             | standing   |
/// | one)                                       |                                                        |            |
/// | ephemeral, of a session that this client   | it is replaced                                         | standing   |
/// | gave up with no server in reach, and that  |                                                        |            |
/// | lives after all                            |                                                        |            |
/// | of another session, maybe for the same     | this object never removes it, but waits until it is    | taken      |
/// | purpose                                    | gone; if a crashed process has left it behind, the     |            |
/// |                                            | server removes it when its session expires             |            |
/// | ephemeral, where ours is not; or not       | the same                                               | taken      |
/// | ephemeral, where ours is                   |                                                        |            |
/// | not ephemeral, as ours                     | it is taken over: our data are written into it, its    | standing   |
/// |                                            | mode and its ACL stay                                  |            |
///
/// | later                                      | what happens                                           | state()    |
/// |--------------------------------------------|--------------------------------------------------------|------------|
/// | another client removes the node or its     | the node is re-created                                 | creating   |
/// | parent; or there is a new session          |                                                        |            |
/// | another client writes data into the node   | the data stay until set_data(), or until the node has  | standing   |
/// |                                            | to be re-created                                       |            |
/// | the connection is lost, there is no        | the attempt is repeated after the pauses of            | as before  |
/// | server, or a server has too much to do     | client_options::retry()                                |            |
/// | an error that no later attempt can mend    | the node ends, see ended()                             | ended      |
///
/// A sequential node keeps the name that it got first. It gets another name only if the first one is taken when the
/// node has to be re-created.
///
/// A node with a time to live stands while this object lives, and goes some time after the process has died, as
/// Curator's PersistentTtlNode. Twice in the time to live, the node's present data are written into it again: so its
/// version rises, and its watches fire. In these cases the server removes the node each time, and it is created again:
///   - this client may not read and write the node;
///   - a node was taken over whose time to live is shorter than ours, or that has one where ours has none: servers do
///     not tell the time to live.
///
/// *Lifetime*: move-only. When the object is destroyed, the node leaves in the background, see leave(); client::idle()
/// waits for that. Until the node has left, it keeps the client open, and like a guard it must not outlive the
/// execution context of its client. May be used on any thread. The coroutines that the members return may be awaited
/// when the object is gone: the node is then leaving, or has left. A default-constructed or moved-from object fails
/// with errc::invalid_argument; its state is persistent_node_state::ended, and leave() does nothing.
class ZKASIO_EXPORT persistent_node {
public:
    persistent_node() noexcept = default;
    /// Throws errc::invalid_path, also for "/", and errc::invalid_argument for a client that was moved from.
    /// @param data with which the node is created each time, until set_data() has replaced them.
    persistent_node(client zk, std::string path, bytes data = bytes(),
                    persistent_node_options options = persistent_node_options());
    persistent_node(persistent_node&&) noexcept = default;
    persistent_node& operator=(persistent_node&&) noexcept = default;

    /// *Completes when* the node stands, at once if it does, with its path: the path of a sequential node has its
    /// number. Like state(), created() tells what was known last: the news that another client has removed the node, or
    /// that the session has expired, may be on its way. No news arrives while there is no connection, nor in a child
    /// process whose loop does not run.
    /// *Fails with* errc::client_closed once leave() was called; error::hung_up(), and goes on trying; else as ended().
    /// *Cancellation* ends the wait only. The error's hint, also that of a timeout(), says why there is no node yet, as
    /// far as known: another client's stands there, what the last attempt has failed with, or no connection.
    asio::awaitable<std::string> created() const;

    /// Writes `data` into the node; from then on the node is created with them. While there is no node, it is created
    /// with them. Of several concurrent calls the last one wins. ZooKeeper can only compare the version: if another
    /// client has just replaced our node by one of the same version, that node gets the data.
    /// *Completes when* a server has confirmed that the node has these data, or those of a later call.
    /// *Fails with* errc::too_large at once, when a request has no room for the data; with what else set() fails with
    /// and is not condition::retryable, or has error::hung_up(): the node stands as before, and all waiting calls fail;
    /// as created() when the node ends first, with error::outcome_unknown() if the data were under way.
    /// *Cancellation* ends the wait only: the data are still written.
    asio::awaitable<void> set_data(bytes data) const;

    /// The state that was known last, see created().
    persistent_node_state state() const noexcept;

    /// The node's path as it was known last, without waiting: "" while the node does not stand. That of a sequential
    /// node has its number.
    std::string standing_path() const;
    /// The data that this object has given the node last: in its create, or in the last set_data() that has completed.
    /// Before the first create, those that this object was constructed with.
    std::string data() const;

    /// *Completes when* the state differs from `known`, with the new state. A slow reader hears of the newest only.
    /// *Fails with* errc::client_closed, errc::forked; after the last state as created().
    /// *Cancellation* ends the wait.
    asio::awaitable<persistent_node_state> state_after(persistent_node_state known) const;

    /// *Completes when* the node has left: leave() was called, or the object was destroyed, and leaving is done.
    /// *Fails with* what has ended the node otherwise: errc::client_closed, errc::forked, zk_errc::auth_failed; with
    /// session_renewal::none errc::session_expired; or what the servers refuse for good: zk_errc::no_auth,
    /// zk_errc::invalid_acl, zk_errc::no_children_for_ephemerals, errc::too_large, zk_errc::no_node with
    /// missing_parents::fail or when the chroot is missing, and others. The message names this node, and says what was
    /// refused.
    /// *Cancellation* ends the wait only.
    asio::awaitable<void> ended() const;

    /// Removes the node; from the call on, the node is not created again. A node that is not ours is not touched, and
    /// one that is not ephemeral and has children stays. Whether the node is ours is looked up immediately before its
    /// removal. ZooKeeper can only compare the version: if another client replaces our node by one of the same version
    /// between lookup and removal, that node is removed.
    /// *Completes when* a server has confirmed that the node is gone, also when the create was still under way; or when
    /// the session that owned the node is over. Without a connection, leave() waits for one.
    /// *Fails with* what the removal fails with, for example zk_errc::no_auth, and what ends the client first. With
    /// errc::not_connected if the node is not ephemeral, no copy of the client is left, nor anything else that keeps
    /// the client open, and there was no session for client_options::connection_timeout(): then the node stays, with a
    /// warning in the log.
    /// *Cancellation* ends the wait: the removal goes on in the background. A second call waits for the same removal.
    asio::awaitable<void> leave() const;

    /// The path that was passed to the constructor, see also standing_path().
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
    std::shared_ptr<membership_detail::node_owner> owner_;
};

}  // namespace zkasio
