#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/group_observer.hpp>
#include <zkasio/membership/group_options.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <utility>

namespace zkasio {

/// The membership of this client in a group, until this object is destroyed: the node that shows the membership is
/// re-created whenever it goes, also in a new session. Move-only. Lifetime, threads, and the moved-from state are those
/// of persistent_node, which a membership is made of.
class ZKASIO_EXPORT group_membership {
public:
    group_membership() noexcept = default;
    /// For writers of recipes. @param has_data whether set_data() is possible.
    group_membership(std::string id, bool has_data, persistent_node node) noexcept
        : id_(std::move(id)), has_data_(has_data), node_(std::move(node)) {}
    group_membership(group_membership&&) noexcept = default;
    group_membership& operator=(group_membership&&) noexcept = default;

    const std::string& id() const noexcept { return id_; }
    /// The member's node.
    const std::string& path() const noexcept { return node_.path(); }

    /// Sets the data that the other members see, see persistent_node::set_data().
    /// *Fails with* errc::invalid_argument where members have no data, see has_member_data().
    asio::awaitable<void> set_data(bytes data) const;

    /// persistent_node_state::standing: the other members see this one, as far as this client knows.
    persistent_node_state state() const noexcept { return node_.state(); }
    /// See persistent_node::state_after().
    asio::awaitable<persistent_node_state> state_after(persistent_node_state known) const {
        return node_.state_after(known);
    }
    /// See persistent_node::ended().
    asio::awaitable<void> ended() const { return node_.ended(); }

    /// Leaves the group: from the call on, this client is not in it.
    /// *Completes when* a server has confirmed that; see persistent_node::leave().
    asio::awaitable<void> leave() const { return node_.leave(); }

private:
    std::string id_;
    bool has_data_ = true;
    persistent_node node_;
};

/// A group: tells which members are there, among all processes that name the same `path`. Java and Python programs can
/// share it, see group_names.
///
/// The coroutines of a group keep what they need: the object may be destroyed before they are awaited, and while they
/// run. One object may be used by any number of coroutines concurrently, on any executors. A moved-from object refuses
/// everything with errc::invalid_argument. Copies name the same group.
class ZKASIO_EXPORT group {
public:
    /// @param path a directory for this group only; created when it is missing: as a container, in the parties of kazoo
    /// as a node that stays. Throws errc::invalid_path.
    group(client zk, std::string path, group_options options = group_options());

    /// *Completes when* this client is in the group. If another session is in the group with this id, join() waits
    /// until that session has left or expired; it may be the session of a process that has crashed and was started
    /// again. In the parties of kazoo, several members may have the same id.
    /// *Fails with* what persistent_node::created() fails with; errc::invalid_argument for an id that is no name of a
    /// node, in any group_names, when this client is in the group with this id already, and for `data` where members
    /// have none, see has_member_data().
    /// *Cancellation*: leaves in the background; the error's hint as that of persistent_node::created().
    asio::awaitable<group_membership> join(std::string id, bytes data = bytes()) const;

    /// Reads the members once.
    /// *Fails with* zk_errc::no_auth when the directory's ACL does not let this client list it; else as cache::ready():
    /// members() waits for a connection.
    asio::awaitable<group_view> members() const;

    /// Follows the members from now on.
    group_observer observe() const;

    const std::string& path() const noexcept { return path_; }

private:
    client zk_;
    std::string path_;
    group_options options_;
};

}  // namespace zkasio
