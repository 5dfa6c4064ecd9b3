#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/with_lock.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio {

/// The choice of an attempt to acquire a lock when another contender has the lock, or is ahead in its queue.
enum class if_contended : std::uint8_t {
    wait,
    give_up
};

/// One attempt to get a lock, see lockable::attempts().
using lock_attempt = std::function<asio::awaitable<std::optional<lock_guard>>(if_contended)>;

/// The interface of every kind of lock: a mutex, an unfair_mutex, a multi_mutex, a shared_mutex as a writer or by its
/// readers(), permits of a semaphore by its request(). A function that takes a `const zkasio::lockable&` works with all
/// of them.
///
/// The coroutines of the members keep what they need: the object may be gone before they are awaited, and while they
/// run. One object may be used by any number of coroutines at once, on any executors; each acquire is a contender of
/// its own. A moved-from object refuses everything with errc::invalid_argument.
class ZKASIO_EXPORT lockable {
public:
    virtual ~lockable();

    /// *Completes when* the lock is acquired. An outage that the session survives does not end the wait.
    /// *Fails with* the errors of `operations`; errc::not_connected when there is no connection at first, for
    /// client_options::connection_timeout; errc::session_expired when the session ends while waiting, but see
    /// acquire_options::survive_expiry(); errc::invalid_argument for an acquire_options::owner() where the kind of lock
    /// has no owners; and the errors that the kind of lock names.
    /// *Cancellation*: leaves no node and no watch behind, and no other contender waits for the cancelled one.
    asio::awaitable<lock_guard> acquire(acquire_options how = acquire_options()) const;

    /// As acquire(), but returns nothing instead of waiting for another contender. Like acquire(), it waits for a
    /// connection; try_acquire_for() with a duration of 0 does not. When it has returned nothing, the nodes that it had
    /// made are gone: a refused try keeps nobody out.
    asio::awaitable<std::optional<lock_guard>> try_acquire(acquire_options how = acquire_options()) const;

    /// As acquire(), but returns nothing when the time is over. One limit covers everything, connecting included; if
    /// there was no connection at all until the limit, the call fails with errc::not_connected. With a duration of 0,
    /// or a time that has passed when the call begins, there is one attempt, as with try_acquire(): the attempt waits
    /// neither for another contender nor for a connection, and fails with errc::not_connected when there is none. The
    /// longest duration and the last time point that exist mean: no limit.
    /// *Fails with* errc::invalid_argument for a negative duration.
    asio::awaitable<std::optional<lock_guard>> try_acquire_for(any_duration limit,
                                                               acquire_options how = acquire_options()) const;
    asio::awaitable<std::optional<lock_guard>> try_acquire_until(boot_clock::time_point limit,
                                                                 acquire_options how = acquire_options()) const;

    /// Acquires, runs `body(guard)`, a coroutine, releases, and returns the result of the body. If the lock is lost
    /// while the body runs, the body receives a terminal cancellation; when the body has really ended, with_lock()
    /// throws errc::lock_lost, see lock_guard::run(). A body may release the guard itself.
    /// *Fails with* errc::timed_out when the time limit of the options is over before the lock is acquired. The message
    /// refers to list_lock(): who waits knows the node in front, which need not be the holder's, and would have to ask.
    /// *Cancellation* is passed on to the body. If the body completes nevertheless, or had completed before, its value
    /// is returned, and the release goes on in the background.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
        Body&& body, with_lock_options how = with_lock_options()) const {
        return lock_detail::with_lock_of(path_, acquire_for_body(how), std::forward<Body>(body), how.revocation(),
                                         how.stop_margin());
    }

    /// Path of the node, or the directory, that all contenders for the lock name.
    const std::string& path() const noexcept { return path_; }

protected:
    // ------------------------------------------------------------------------------------ for writers of recipes

    /// @param zk the client of the lock.
    lockable(client zk, std::string path) : zk_(std::move(zk)), path_(std::move(path)) {}
    /// For a kind of lock whose bookkeeping all views of a client share (client::rooted()). Its attempts run on() the
    /// client itself, with whole paths such as that of directory(), and never with path(); callers are given guards,
    /// positions and errors with the paths of their view.
    /// @param recipe the kind's name, for messages: the path has to be that of a directory; "": it was checked before.
    lockable(std::string_view recipe, client zk, std::string path);
    lockable(const lockable&) = default;
    lockable(lockable&&) noexcept = default;
    lockable& operator=(const lockable&) = default;
    lockable& operator=(lockable&&) noexcept = default;

    /// The definition of a kind of lock: the function that acquires it. Each call of the function makes one attempt.
    /// The attempt completes with a guard, or, with if_contended::give_up, with nothing where it would have to wait for
    /// another contender. The function may be called more than once.
    /// *Lifetime*: the function does not refer to this object, and its coroutine does not refer to the function.
    virtual lock_attempt attempts(acquire_options how) const = 0;

    /// One attempt that waits, by default one of attempts(). Override it where one coroutine less does the same: each
    /// coroutine costs memory for every waiter.
    virtual asio::awaitable<lock_guard> wait_for_lock(acquire_options how) const;

    /// The reason for which each acquire of this lock fails, before it waits for anything; by default null: there is
    /// none.
    virtual std::exception_ptr refusal() const;

    const client& on() const noexcept { return zk_; }
    /// path() as on() has it.
    std::string directory() const;
    /// The client, or the view of it, that the lock was made with.
    client view() const;
    void set_path(std::string path) { path_ = std::move(path); }

private:
    friend class multi_mutex;  // asks its members for their client and their refusal()
    asio::awaitable<lock_guard> acquire_for_body(const with_lock_options& how) const;
    lock_attempt attempts_over_sessions(acquire_options how) const;
    lock_attempt attempts_in_view(acquire_options how) const;

    client zk_;
    std::string path_;
    std::shared_ptr<const client> view_;  // as given, where attempts run on the client itself instead
};

}  // namespace zkasio
