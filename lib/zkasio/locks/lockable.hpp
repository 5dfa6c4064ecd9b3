#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/if_contended.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

namespace lock_detail {
struct lock_spec;
}

/// One attempt to get a lock, see lockable::attempts().
using lock_attempt = std::function<asio::awaitable<std::optional<lock_guard>>(if_contended)>;

/// Whatever can be locked, by whichever kind of lock: a mutex, an unfair_mutex, a multi_mutex, a shared_mutex as a
/// writer or by its readers(), permits of a semaphore by its request(). A function that takes a `const
/// zkasio::lockable&` works with all of them.
///
/// What the members return takes along what it needs: the object may be gone before it is awaited, and while it runs.
/// One object may be used by any number of coroutines at once, on any executors; each acquire is a contender of its
/// own. An object that was moved from refuses everything with errc::invalid_argument.
class ZKASIO_EXPORT lockable {
public:
    virtual ~lockable();

    /// *Completes when* the lock is ours. An outage that the session survives does not end the wait.
    /// *Fails with* what operations fail with; errc::not_connected when there is no connection at first, for
    /// client_options::connection_timeout; errc::session_expired when the session ends while waiting, but see
    /// acquire_options::survive_expiry(); errc::invalid_argument for an acquire_options::owner() where the kind of lock
    /// knows none; and what the kind of lock says.
    /// *Cancellation*: leaves no node and no watch behind, and nobody else waits for us.
    asio::awaitable<lock_guard> acquire(acquire_options how = acquire_options()) const {
        return how.survives_expiry() ? acquire_over_sessions(std::move(how)) : wait_for_lock(std::move(how));
    }

    /// As acquire(), but returns nothing instead of waiting for another contender. It waits for a connection, as
    /// acquire() does; see try_acquire_for() for one that does not.
    asio::awaitable<std::optional<lock_guard>> try_acquire(acquire_options how = acquire_options()) const;

    /// As acquire(), but returns nothing when the time is over: one limit for all, connecting included (if there was no
    /// connection at all until then, it fails with errc::not_connected). With a duration of 0, or a time that has
    /// passed when it begins, it is one attempt: it has the lock if that is free, as with try_acquire(), but waits
    /// neither for another contender nor for a connection, and fails with errc::not_connected when there is none.
    /// *Fails with* errc::invalid_argument for a negative duration. The longest duration and the last time point there
    /// are mean: no limit.
    asio::awaitable<std::optional<lock_guard>> try_acquire_for(any_duration limit,
                                                               acquire_options how = acquire_options()) const;
    asio::awaitable<std::optional<lock_guard>> try_acquire_until(boot_clock::time_point limit,
                                                                 acquire_options how = acquire_options()) const;

    /// Acquires, runs `body(guard)`, a coroutine, and releases. When the lock is lost meanwhile, the body receives a
    /// terminal cancellation; when it has really ended, this throws errc::lock_lost, see lock_guard::run(). A body may
    /// release the guard itself. Returns what the body returns. *Lifetime* of the body: see kept_body.hpp.
    /// *Cancellation* is passed on to the body. When the body has completed all the same, or before, its value is
    /// returned, and the release goes on in the background.
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
        Body&& body, revocation_policy policy = revocation_policy::ignore()) const {
        return lock_detail::with_lock_of(path_, acquire(), std::forward<Body>(body), policy);
    }

    /// Of the node, or the directory, that all who share the lock name.
    const std::string& path() const noexcept { return path_; }

protected:
    // ------------------------------------------------------------------------------------ for writers of recipes

    /// @param zk the client of the lock.
    lockable(client zk, std::string path) : zk_(std::move(zk)), path_(std::move(path)) {}
    lockable(const lockable&) = default;
    lockable(lockable&&) noexcept = default;
    lockable& operator=(const lockable&) = default;
    lockable& operator=(lockable&&) noexcept = default;

    /// The one thing that a kind of lock says: how it is acquired. The function makes one attempt; it completes with a
    /// guard, or, with if_contended::give_up, with nothing where it would have to wait for another contender. It may be
    /// called more than once.
    /// *Lifetime*: the function does not refer to this object, nor does what it returns refer to the function.
    virtual lock_attempt attempts(acquire_options how) const = 0;

    /// What acquire() does; by itself one of attempts() that waits. To be overridden where the same can be had with a
    /// coroutine less: each is memory for everybody who waits.
    virtual asio::awaitable<lock_guard> wait_for_lock(acquire_options how) const;

    /// The queue of a lock that a multi_mutex may take in one transaction with others; null for all other kinds.
    virtual std::shared_ptr<const lock_detail::lock_spec> joint_queue() const { return nullptr; }

    const client& on() const noexcept { return zk_; }
    void set_path(std::string path) { path_ = std::move(path); }

private:
    friend class multi_mutex;  // asks its members for their joint_queue(), and for their client
    asio::awaitable<lock_guard> acquire_over_sessions(acquire_options how) const;
    lock_attempt attempts_over_sessions(acquire_options how) const;

    client zk_;
    std::string path_;
};

}  // namespace zkasio
