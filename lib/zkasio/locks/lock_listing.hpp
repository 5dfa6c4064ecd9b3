#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// The kind of lock that the names of a directory's children tell.
enum class lock_directory_kind : std::uint8_t {
    empty,        ///< no holder and no waiter
    mutex,        ///< mutex, cohort_mutex; Curator's InterProcessMutex and LeaderSelector, go-zk's and kazoo's locks
    shared_mutex,  ///< readers and writers
    election,     ///< leader_election; Curator's LeaderLatch
    semaphore,    ///< semaphore; Curator's InterProcessSemaphoreV2
    single_node,  ///< the node itself is the lock: unfair_mutex
    other,        ///< there are children, and none is a contender
};

ZKASIO_EXPORT std::string_view to_string(lock_directory_kind k) noexcept;

/// A lock at one moment, with all that take part in it.
struct ZKASIO_EXPORT lock_listing {
    std::string path;
    bool exists = true;
    lock_directory_kind kind = lock_directory_kind::empty;
    /// In the order of arrival; of a semaphore, those with a permit first. A request for several permits that waits may
    /// seem to have all but one of them.
    std::vector<contender_info> contenders;
    std::vector<std::string> foreign;  ///< names of children that are contenders for no kind of lock

    std::vector<contender_info> holders() const;
};

/// Lists a lock of unknown kind, by the names that zkasio, Curator, go-zk and kazoo give its nodes: for tools. (Names
/// of name_scheme::custom() are known if they end as one of those. So are nodes without an id, as "lock-0000000000",
/// for which the locks themselves wait. The nodes of `slots`, which are named by a number alone, are listed as
/// foreign.) The second form knows the names of one scheme instead. Where the kind is known, mutex::contenders() and
/// its like say more exactly what is wrong with a directory.
/// *Fails with* the errors of operations::get() and children(), but a `path` without a node is no error. Nodes that
/// this client may not read: zk_errc::no_auth.
ZKASIO_EXPORT asio::awaitable<lock_listing> list_lock(client zk, std::string path);
/// As above, for a lock or an election whose nodes have these names: lock_directory_kind::mutex, shared_mutex if the
/// scheme has readers, or else empty, other or single_node. Where a scheme has readers and a marker of its own for a
/// mutex, as name_scheme::curator(), the nodes tell which of the two it is. Other children are foreign, and no error.
ZKASIO_EXPORT asio::awaitable<lock_listing> list_lock(client zk, std::string path, name_scheme names);

}  // namespace zkasio
