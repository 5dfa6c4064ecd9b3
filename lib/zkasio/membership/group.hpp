#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/group_membership.hpp>
#include <zkasio/membership/group_observer.hpp>
#include <zkasio/membership/group_options.hpp>
#include <zkasio/membership/group_view.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace zkasio {

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
