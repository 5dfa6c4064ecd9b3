#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace zkasio {

namespace lock_detail {
struct lock_spec;
}

class mutex_options : public queue_options<mutex_options> {
public:
    mutex_options() {}
};

/// A mutual-exclusion lock shared by every process that names the same `path`.
///
/// Contenders queue as ephemeral-sequential children of `path`; the lowest owns the lock. A waiter watches only its
/// predecessor, so one release wakes one contender. Strictly first come, first served, over all processes: a contender
/// waits for one turn of each contender ahead of it (one tenure of a cohort_mutex), and for no other, however far or
/// slow it is. A contender ahead that is cut off holds the others up until its session ends, after its session timeout.
/// Contenders of one client hand over to each other without asking the servers. The nodes are those of Curator's
/// InterProcessMutex: Java, Go and C++ services can share one lock.
///
/// Ownership is a lease: a paused holder can lose its session without noticing. Fence what you protect with
/// lock_guard::token() or lock_guard::commit(), or run the work in with_lock(), which is cancelled on loss. If an
/// operator deletes the holder's node, the holder may not know for a quarter of the session timeout; after that time,
/// the holder has a watch on the node.
///
/// An uncontended acquire() takes one round trip. acquire() also fails with errc::foreign_child when the directory has
/// children that are not contenders. A coroutine that acquires the lock twice waits for itself, unless it passes its
/// owner: acquire_options::owner(). A second acquire() from within with_lock(), on the body's own executor or within
/// another with_lock() there, is noticed, and fails with errc::would_deadlock. Copies name the same lock.
class ZKASIO_EXPORT mutex final : public lockable {
public:
    /// @param path a directory of its own; created as a container when it is missing. Throws errc::invalid_path.
    mutex(client zk, std::string path, mutex_options options = mutex_options());

    /// The holder and the waiters, in order, the holder first.
    asio::awaitable<std::vector<contender_info>> contenders() const;

protected:
    lock_attempt attempts(acquire_options how) const override;
    asio::awaitable<lock_guard> wait_for_lock(acquire_options how) const override;
    std::exception_ptr refusal() const override;

private:
    std::shared_ptr<const lock_detail::lock_spec> spec_;
};

}  // namespace zkasio
