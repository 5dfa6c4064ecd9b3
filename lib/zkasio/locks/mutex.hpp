#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio {

namespace lock_detail {
struct lock_spec;
}

class mutex_options {
public:
    mutex_options() {}
    /// Written into the lock's node, for operators and contenders() to read: a host name, say.
    mutex_options& data(bytes d) { data_ = std::move(d).take(); return *this; }
    /// Of the lock's node and of directories created for it (open_acl()). Must let this client read and remove it.
    mutex_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }
    /// How the nodes are named (Curator's way).
    mutex_options& names(name_scheme n) { names_ = std::move(n); return *this; }

    const std::string& data() const noexcept { return data_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    const name_scheme& names() const noexcept { return names_; }

private:
    std::string data_;
    zkasio::acl acl_ = open_acl();
    name_scheme names_ = name_scheme::curator();
};

/// A mutual-exclusion lock shared by every process that names the same `path`.
///
/// Contenders queue as ephemeral-sequential children of `path`; the lowest owns the lock. A waiter watches only its
/// predecessor, so one release wakes one contender. Strictly first come, first served, over all processes. Contenders
/// of one client hand over to each other without asking the servers. The nodes are those of Curator's
/// InterProcessMutex: Java, Go and C++ services can share one lock.
///
/// Ownership is a lease: a paused holder can lose its session without noticing. Fence what you protect with
/// lock_guard::token() or lock_guard::commit(), or run the work in with_lock(), which is cancelled on loss. When
/// somebody deletes its node by hand, a holder may not know for a quarter of the session timeout; afterwards it has a
/// watch on it.
///
/// One object may be used by any number of coroutines at once, on any executors; each acquire is a contender of its
/// own, so a coroutine that acquires twice waits for itself, unless it says who it is: acquire_options::owner(). From
/// within with_lock(), on the body's own executor or within another with_lock() there, that is noticed: acquire() fails
/// with errc::would_deadlock. Copies name the same lock.
class ZKASIO_EXPORT mutex {
public:
    /// @param path a directory of its own; created as a container when it is missing. Throws errc::invalid_path.
    mutex(client zk, std::string path, mutex_options options = mutex_options());

    /// *Completes when* the lock is ours. Uncontended that takes one round trip.
    /// *Fails with* what operations fail with; errc::foreign_child when the directory has other children than
    /// contenders; errc::session_expired when the session ends while waiting.
    /// *Cancellation*: leaves no node and no watch behind, and nobody else waits for us.
    asio::awaitable<lock_guard> acquire(acquire_options how = acquire_options()) const;

    /// As acquire(), but returns nothing instead of waiting for another contender. Like any operation it waits for a
    /// connection, for up to client_options::connection_timeout; see try_acquire_for() for one that does not.
    asio::awaitable<std::optional<lock_guard>> try_acquire(acquire_options how = acquire_options()) const;

    /// As acquire(), but returns nothing when the time is over: one limit for all, connecting included (if there was no
    /// connection at all until then, it fails with errc::not_connected). With a duration of 0, or a time that has
    /// passed when it begins, it is one attempt: it has the lock if that is free, as with try_acquire(), but waits
    /// neither for another contender nor for a connection, and fails with errc::not_connected when there is none.
    /// *Fails with* errc::invalid_argument for a negative duration. The longest duration and the last time point there
    /// are mean: no limit.
    asio::awaitable<std::optional<lock_guard>> try_acquire_for(std::chrono::nanoseconds limit,
                                                               acquire_options how = acquire_options()) const;
    asio::awaitable<std::optional<lock_guard>> try_acquire_until(boot_clock::time_point limit,
                                                                 acquire_options how = acquire_options()) const;

    /// Acquires, runs `body(guard)`, a coroutine, and releases. When the lock is lost meanwhile, the body receives a
    /// terminal cancellation; when it has really ended, this throws errc::lock_lost, see lock_guard::run(). A body may
    /// release the guard itself. Returns what the body returns. *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
        Body&& body, revocation_policy policy = revocation_policy::ignore()) const {
        return lock_detail::with_lock_of(path_, acquire(), std::forward<Body>(body), policy);
    }

    /// Who holds the lock and who waits for it, in order, the holder first.
    asio::awaitable<std::vector<contender_info>> contenders() const;

    const std::string& path() const noexcept { return path_; }

    /// For multi_mutex: the client's strand, and what its contenders share.
    asio::any_io_executor get_executor() const { return zk_.get_executor(); }
    const std::shared_ptr<const lock_detail::lock_spec>& spec() const noexcept { return spec_; }

private:
    client zk_;
    std::string path_;
    std::shared_ptr<const lock_detail::lock_spec> spec_;
};

}  // namespace zkasio
