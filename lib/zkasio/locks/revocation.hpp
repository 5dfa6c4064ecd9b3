#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace zkasio {

class client;

/// Asks the holder of a lock to give the lock back, or a waiter to leave the queue, by writing "__REVOKE__" into the
/// contender's node, as Curator's Revoker does. In an election with the names of Curator's LeaderLatch
/// (name_scheme::curator_latch()), the leader or candidate is asked by a line in the data of the directory instead, see
/// directory_note: after a write into a contender's node, a LeaderLatch behind that contender would never lead. The
/// caller needs the permission to write the data of the node, or of the directory.
/// *Fails with* errc::invalid_argument when the data of the directory belong to another program.
/// @param path of the contender's node, see contenders(). A node that is gone is no error.
ZKASIO_EXPORT asio::awaitable<void> revoke(client zk, std::string path);

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
