#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace zkasio {

class ZKASIO_EXPORT unfair_mutex_options : public lock_options<unfair_mutex_options> {
public:
    unfair_mutex_options() {}
    /// When the node is gone, each waiter sleeps for a random time before it tries again, so that not all try at once:
    /// up to `first` (10 ms), and twice as much after each failed attempt, up to `most` (500 ms; at most a day).
    unfair_mutex_options& back_off(any_duration first, any_duration most);

    std::chrono::milliseconds first_back_off() const noexcept { return first_; }
    std::chrono::milliseconds most_back_off() const noexcept { return most_; }

private:
    std::chrono::milliseconds first_{10}, most_{500};
};

/// The simple lock: one ephemeral node. Its creator has the lock; other clients watch the node, and try again when it
/// is gone. For flags ("who leads?") and for locks with few contenders. Not fair: luck decides, and a contender may
/// wait for ever; every release wakes all waiting processes (of one process only one coroutine at a time).
///
/// For more than that see mutex. In particular, commit() is refused: a node of the same name may be another client's,
/// so it proves nothing. If an operator deletes the node, the holder notices within a quarter of the session timeout. A
/// release first asks, after a sync(), whether the node is still the holder's: three round trips. If an operator
/// deletes the holder's node and the next holder creates another one between question and removal, the release removes
/// the next holder's node: ZooKeeper cannot tell two nodes of one name and version apart.
///
/// There are no owners, and there is no queue: acquire_options::on_position() tells nothing. Copies name the same lock.
class ZKASIO_EXPORT unfair_mutex final : public lockable {
public:
    /// @param path of the node. Its parents are created as containers when they are missing. Throws errc::invalid_path.
    unfair_mutex(client zk, std::string path, unfair_mutex_options options = unfair_mutex_options());

    /// The holder; nothing when the lock is free.
    asio::awaitable<std::optional<contender_info>> holder() const;

protected:
    lock_attempt attempts(acquire_options how) const override;

private:
    unfair_mutex_options options_;
};

}  // namespace zkasio
