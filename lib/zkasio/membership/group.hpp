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

/// Who is there, among all processes that name the same `path`. Java and Python programs can share it, see group_names.
///
/// What the members return takes along what it needs: the object may be gone before it is awaited, and while it runs.
/// One object may be used by any number of coroutines at once, on any executors. An object that was moved from refuses
/// everything with errc::invalid_argument. Copies name the same group.
class ZKASIO_EXPORT group {
public:
    /// @param path a directory of its own; created when it is missing: as a container, in the parties of kazoo as a
    /// node that stays. Throws errc::invalid_path.
    group(client zk, std::string path, group_options options = group_options());

    /// *Completes when* we are in the group.
    ///
    /// Another session that is in it with this id is waited for until it has left or expired; it may be that of a
    /// process that has crashed and was started again. In the parties of kazoo, ids may be there several times.
    /// *Fails with* what persistent_node::ended() fails with; errc::invalid_argument for an id that is no name of a
    /// node, in any group_names, when this client is in the group with this id already, and for `data` in the parties
    /// of kazoo, whose members have none. *Cancellation*: leaves in the background.
    asio::awaitable<group_membership> join(std::string id, bytes data = bytes()) const;

    /// Who is in the group, asked for once. *Fails with* zk_errc::no_auth when the directory's ACL keeps that
    /// from us; else as cache::ready(): it waits for a connection.
    asio::awaitable<group_view> members() const;

    /// Follows who is in the group from now on.
    group_observer observe() const;

    const std::string& path() const noexcept { return path_; }

private:
    client zk_;
    std::string path_;
    group_options options_;
};

}  // namespace zkasio
