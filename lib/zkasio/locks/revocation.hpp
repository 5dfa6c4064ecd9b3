#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace zkasio {

class client;

/// What revoke() does to the data in a contender's node, see lock_options::data().
enum class holder_data : std::uint8_t {
    replaced,  ///< the request replaces the data: contenders of Curator and of older versions of zkasio understand it
    kept,      ///< the request is written into the data of the directory, see directory_note: only contenders of this
               ///< version of zkasio and later ones understand it
};

/// Asks a contender to give its lock back, by writing "__REVOKE__" into the contender's node, as Curator's Revoker
/// does. In an election with the names of Curator's LeaderLatch (name_scheme::curator_latch()), the leader or candidate
/// is asked by a line in the data of the directory instead, see directory_note: after a write into a contender's node,
/// a LeaderLatch behind that contender would never lead. The caller needs the permission to write the data of the node,
/// or of the directory.
///
/// A waiter of zkasio stays in the queue, and notices the request when it is granted the lock: the body of its
/// with_lock() begins, and ends as its revocation_policy says.
/// Danger: a contender of a program that writes no id into its names, name_scheme::plain(), does not know the request,
/// and the data that it has put into its node, such as a leader's address, are lost.
/// *Fails with* errc::invalid_argument for a node that does not end with a session, such as the lock's directory; when
/// the data of the directory belong to another program; and for holder_data::kept with the node of an unfair_mutex, or
/// of slots.
/// @param path of the contender's node, see contenders(). A node that is gone is no error.
/// @param data what happens to the data in the contender's node.
ZKASIO_EXPORT asio::awaitable<void> revoke(client zk, std::string path, holder_data data = holder_data::replaced);

/// The reaction of with_lock() when the lock is asked back (see revoke()) while the body runs.
class revocation_policy {
public:
    /// None. The body may look at lock_guard::revoke_requested().
    static revocation_policy ignore() { return revocation_policy(std::nullopt); }
    /// After this time, the body receives a terminal cancellation. When the body has ended by it, with_lock() throws
    /// errc::revoked; an exception of the body is nested as when a lock is lost, see lock_guard::run().
    static revocation_policy cancel_after(any_duration grace) { return revocation_policy(grace); }

    const std::optional<std::chrono::nanoseconds>& grace() const noexcept { return grace_; }

private:
    explicit revocation_policy(std::optional<std::chrono::nanoseconds> grace) : grace_(grace) {}
    std::optional<std::chrono::nanoseconds> grace_;
};

}  // namespace zkasio
