#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
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
    /// When the node goes, each waiter sleeps for a random time before it tries again, so that not all come at once: up
    /// to `first` (10 ms), and twice as much after each attempt in vain, up to `most` (500 ms; at most a day).
    unfair_mutex_options& back_off(std::chrono::milliseconds first, std::chrono::milliseconds most);

    std::chrono::milliseconds first_back_off() const noexcept { return first_; }
    std::chrono::milliseconds most_back_off() const noexcept { return most_; }

private:
    std::chrono::milliseconds first_{10}, most_{500};
};

/// The simple lock: one ephemeral node. Whoever manages to create it has the lock; the others watch it and try again
/// when it is gone. For flags ("who leads?") and for locks with few contenders. Not fair: luck decides, and somebody
/// may wait for ever; every release wakes all waiting processes (of one process only one coroutine at a time).
///
/// For more than that see mutex. In particular commit() is refused here: a node of the same name may be somebody
/// else's, so it proves nothing. When somebody deletes the node by hand, the holder notices within a quarter of the
/// session timeout. A release first asks the servers whose node stands there, behind a sync(): three round trips. If an
/// operator deletes the holder's node and the next holder creates another one between that question and the removal,
/// the release removes the next holder's node: ZooKeeper cannot tell two nodes of one name and version apart.
///
/// It has no owners, and no queue: acquire_options::on_position() tells nothing. Copies name the same lock.
class ZKASIO_EXPORT unfair_mutex final : public lockable {
public:
    /// @param path of the node. Its parents are created as containers when they are missing. Throws errc::invalid_path.
    unfair_mutex(client zk, std::string path, unfair_mutex_options options = unfair_mutex_options());

    /// Who has it; nothing when nobody does.
    asio::awaitable<std::optional<contender_info>> holder() const;

protected:
    lock_attempt attempts(acquire_options how) const override;

private:
    unfair_mutex_options options_;
};

}  // namespace zkasio
