#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>
#include <zkasio/multi_read.hpp>
#include <zkasio/transaction.hpp>
#include <zkasio/types.hpp>
#include <zkasio/watch.hpp>
#include <zkasio/watch_stream.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio {

namespace detail {
class core;
struct access;
struct session_record;

/// A handle's root, see client::rooted(): a string that its core keeps. Null: of the client itself, or moved from.
class held_root {
public:
    held_root(const std::string* root = nullptr) noexcept : root_(root) {}
    held_root(const held_root&) noexcept = default;
    held_root(held_root&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
    held_root& operator=(const held_root&) noexcept = default;
    held_root& operator=(held_root&& other) noexcept {
        root_ = std::exchange(other.root_, nullptr);
        return *this;
    }
    ~held_root() = default;
    operator const std::string*() const noexcept { return root_; }

private:
    const std::string* root_;
};
}  // namespace detail

/// The operations on nodes. A `client` runs them on the current session; a `session` runs them on itself or not at all.
///
/// Every operation may be awaited from any executor, and resumes there. An operation owns what it needs: its object may
/// be destroyed before the operation is awaited, and while it runs. (When the last handle of a client is destroyed, the
/// client closes, and the operations that are awaited then fail with errc::client_closed.) The operations of an object
/// that was moved from fail with errc::invalid_argument.
///
/// *Completes when* the server has answered. Without a connection, the operation waits for at most
/// `client_options::connection_timeout`. Operations that say so (toolbox::ensure_removed(), client::add_auth()) wait
/// for as long as the session lives, once they were sent.
///
/// *Fails with* zkasio::error, whose code is
///   - errc::invalid_path, errc::invalid_argument, errc::too_large: found before anything was sent;
///   - errc::not_connected: no connection in time; nothing was sent;
///   - zk_errc::no_node, no_auth, bad_version, ...: the server's answer;
///   - zk_errc::connection_loss and others that match condition::retryable: the connection was lost after sending.
///     Operations that only read are then retried, by the client's retry policy. Writes are not: they may have been
///     applied, as `error::outcome_unknown()` says; `error::hung_up()` says that servers hang up at the request;
///   - errc::session_expired, errc::client_closed, zk_errc::auth_failed: all match condition::session_ended.
///
/// *Cancellation*: ends the wait at once with asio::error::operation_aborted. A request that was sent may still be
/// applied, see `error::outcome_unknown()`. A total cancellation promises to have no effect: so it does not end a write
/// that was sent, which ends with its answer.
///
/// Paths follow path_problem(). Nodes below /zookeeper are not created, set or removed, except those of quotas, below
/// /zookeeper/quota. A request (path, data and ACL together) is at most 1 MiB - 1 KiB long, a server's limit.
class ZKASIO_EXPORT operations {
public:
    static constexpr std::size_t max_request = max_request_bytes;

    asio::awaitable<created> create(std::string path, bytes data = bytes(),
                                    create_options options = create_options()) const;

    /// Creates the node if it does not exist. If the node exists, no matter which client has created it, this returns
    /// nothing and leaves the node as it is.
    /// *Fails with* errc::invalid_argument for a sequential mode and for protection, whose nodes get a new name each
    /// time.
    ///
    /// If the answer is lost (error::outcome_unknown()), this call may have created the node. A second call then
    /// returns nothing, although no other client has created the node. A caller that has to tell these cases apart
    /// writes something of its own into the data, and reads the data back.
    asio::awaitable<std::optional<created>> create_unless_exists(std::string path, bytes data = bytes(),
                                                                 create_options options = create_options()) const;

    /// Sets the data of the node, or creates it with `options` if there is none. An existing node keeps mode and ACL.
    /// *Fails with* errc::invalid_argument as create_unless_exists(); with zk_errc::node_exists if other clients go on
    /// creating and removing the node between the two requests.
    ///
    /// If the answer is lost (error::outcome_unknown()), the data may have been written. A second call does no harm,
    /// unless another client has written since: its data are overwritten. Use set() with a version where that matters.
    asio::awaitable<node_stat> create_or_set(std::string path, bytes data,
                                             create_options options = create_options()) const;

    asio::awaitable<node_data> get(std::string path) const;
    asio::awaitable<node_stat> set(std::string path, bytes data, std::int32_t version = any_version) const;
    asio::awaitable<std::optional<node_stat>> exists(std::string path) const;
    asio::awaitable<node_children> children(std::string path) const;
    asio::awaitable<void> remove(std::string path, std::int32_t version = any_version) const;

    /// Removes the node and all nodes below it. Not atomic: a node that is added in the meantime is removed as well,
    /// or, if nodes are added again and again, this fails with zk_errc::not_empty. A missing node is no error.
    asio::awaitable<void> remove_recursive(std::string path) const;

    /// Applies all steps or none. *Fails with* the code of the step that the server refused; the message names it.
    asio::awaitable<std::vector<step_result>> multi(transaction steps) const;

    /// Reads any number of nodes in one request. The results are those of the reads, in their order, and all of one
    /// moment at one server: no write is between them. A read that the server refuses fails alone, see
    /// read_result::code.
    ///
    /// *Fails with* zk_errc::unimplemented: the server is older than ZooKeeper 3.6. To a request that it does not know,
    /// a server answers so and hangs up: requests of this client that are under way then lose their connection. So the
    /// request is not sent to the same server again in this session, and fails at once. This holds for all operations
    /// down to count_below(). A client with client_options::read_only() does not send them at all.
    ///
    /// What it costs: a request, however many reads; the answer has all data in one piece, which a server puts together
    /// in memory. Batches of some 64 reads are as fast as larger ones. An answer of more than 128 MiB ends the
    /// connection.
    asio::awaitable<std::vector<read_result>> multi_read(read_list nodes) const;

    /// The identities that the servers know this connection by, as their ACLs have them: ("ip", "10.0.0.7"), ("digest",
    /// the user's name), ("x509", the subject of the certificate) ...
    /// *Fails with* zk_errc::unimplemented before ZooKeeper 3.7: see multi_read().
    asio::awaitable<std::vector<acl_id>> who_am_i() const;

    /// The ephemeral nodes of this session whose paths begin with `prefix`, a path. Compared as text: "/a" finds "/ab".
    /// *Fails with* zk_errc::unimplemented before ZooKeeper 3.6: see multi_read().
    asio::awaitable<std::vector<std::string>> ephemerals(std::string prefix = "/") const;

    /// How many nodes there are below this one, at all depths. To find out, the server looks at every node that it has.
    /// *Fails with* zk_errc::unimplemented before ZooKeeper 3.6: see multi_read().
    asio::awaitable<std::size_t> count_below(std::string path) const;

    /// After sync(), the client's server has applied every write, of any client, that was finished before the call.
    asio::awaitable<void> sync(std::string path = "/") const;

    struct acl_and_stat {
        zkasio::acl acl;
        node_stat stat;
    };
    asio::awaitable<acl_and_stat> get_acl(std::string path) const;
    asio::awaitable<void> set_acl(std::string path, acl entries, std::int32_t acl_version = any_version) const;

    asio::awaitable<watched<node_data>> get_and_watch(std::string path) const;
    /// Also watches for a node that does not exist yet.
    asio::awaitable<watched<std::optional<node_stat>>> exists_and_watch(std::string path) const;
    /// Fires when a child is added or removed, and when the node itself is removed.
    asio::awaitable<watched<node_children>> children_and_watch(std::string path) const;

    /// Watches the node and the names of its children, or the node and all nodes below it, until the stream is closed
    /// or destroyed: also in the following connections, and, called on a client, in the following sessions.
    /// *Completes when* a server has set the watch: every later change is reported. (To begin with what is there, read
    /// the nodes then.)
    /// *Fails with* errc::not_connected when that has not happened after client_options::connection_timeout; with
    /// zk_errc::unimplemented: the server is older than ZooKeeper 3.6, see multi_read(). A server that hangs up instead
    /// of answering is asked twice in ten minutes, and then counts as such a server. With zk_errc::not_read_only: a
    /// client with client_options::read_only(). With errc::session_expired, called on a session that is over; with
    /// errc::client_closed and errc::invalid_path.
    /// *Cancellation* ends the stream, and removes the watch in the background.
    asio::awaitable<watch_stream> add_watch(std::string path, watch_mode mode) const;

    /// The configuration of the ensemble, as ZooKeeper prints it, one server a line.
    asio::awaitable<node_data> get_config() const;
    asio::awaitable<watched<node_data>> config_and_watch() const;
    /// Adds and removes servers ("server.4=host:port:port;port" and "4", comma separated), or, when `members` is not
    /// empty, replaces all of them. Needs the right to write /zookeeper/config and reconfigEnabled on the servers.
    /// @param from_version the `version=` of the configuration to be replaced; -1: any.
    asio::awaitable<node_data> reconfigure(std::string joining, std::string leaving, std::string members = {},
                                           std::int64_t from_version = -1) const;

protected:
    operations(std::shared_ptr<detail::core> core, std::shared_ptr<detail::session_record> record,
               const std::string* root = nullptr)
        : core_(std::move(core)), session_(std::move(record)), root_(root) {}

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::session_record> session_;  // null: the current session
    detail::held_root root_;                           // see client::rooted(); null: the client itself
    bool patient_ = false;                             // see session::patient()

private:
    friend class toolbox;
    friend struct detail::access;
    struct impl;
};

/// A random id for protection (RFC 4122, version 4, lower case), and the prefix "_c_<id>-" that Curator gives such
/// nodes.
ZKASIO_EXPORT std::string new_protection_id();
ZKASIO_EXPORT std::string protection_prefix(const std::string& id);

}  // namespace zkasio
