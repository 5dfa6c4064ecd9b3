#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

namespace lock_detail {
struct lock_spec;
}

class shared_mutex_options : public queue_options<shared_mutex_options> {
public:
    shared_mutex_options() {}
};

/// The readers' or the writers' side of a shared_mutex, as a lock of its own. Returned by shared_mutex::as(). Copies
/// name the same lock.
class ZKASIO_EXPORT shared_mutex_side : public lockable {
public:
    lock_kind kind() const noexcept { return kind_; }

protected:
    lock_attempt attempts(acquire_options how) const override;
    asio::awaitable<lock_guard> wait_for_lock(acquire_options how) const override;
    std::exception_ptr refusal() const override;

private:
    friend class shared_mutex;
    shared_mutex_side(client zk, std::string path, lock_kind kind)
        : lockable("shared_mutex", std::move(zk), std::move(path)), kind_(kind) {}

    std::shared_ptr<const lock_detail::lock_spec> spec_;
    lock_kind kind_;
};

/// A lock that many readers share or one writer has alone, for all processes that name the same `path`.
///
/// Readers and writers queue as ephemeral-sequential children of `path`, first come, first served: a reader waits for
/// the last writer ahead, a writer for all contenders ahead. So readers between two writers share the lock, one release
/// wakes only the contenders that go next, and neither writers nor readers are starved, however far they are. The nodes
/// are those of Curator's InterProcessReadWriteLock (ZooKeeper's recipe "shared locks").
///
/// A writer can become a reader, see downgrade(). A reader cannot become a writer: two readers that try would wait for
/// each other. Where such an attempt can be noticed (a lock_owner, or the body of with_shared_lock()), it fails with
/// errc::would_deadlock.
///
/// The contract of mutex for ownership, fencing, sharing of one object, waiting and cancellation holds here, too.
///
/// As a lockable, a shared_mutex is its writers' side; the readers' side is readers().
class ZKASIO_EXPORT shared_mutex final : public shared_mutex_side {
public:
    /// @param path a directory of its own; created as a container when it is missing. Throws errc::invalid_path.
    shared_mutex(client zk, std::string path, shared_mutex_options options = shared_mutex_options());

    /// The readers' side: shared with other readers.
    shared_mutex_side readers() const { return as(lock_kind::shared); }
    /// The writers' or the readers' side, for a caller that decides at run time. (Do not write `w ? co_await
    /// m.acquire() : co_await m.acquire_shared()`: g++ 12 destroys the result twice.)
    shared_mutex_side as(lock_kind kind) const;

    /// As a writer: alone. See lockable.
    using lockable::acquire;
    using lockable::try_acquire;
    using lockable::try_acquire_for;
    using lockable::try_acquire_until;
    using lockable::with_lock;

    /// As a reader: the members of readers().
    asio::awaitable<lock_guard> acquire_shared(acquire_options how = acquire_options()) const {
        return readers().acquire(std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire_shared(acquire_options how = acquire_options()) const {
        return readers().try_acquire(std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire_shared_for(any_duration limit,
                                                                      acquire_options how = acquire_options()) const {
        return readers().try_acquire_for(limit, std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire_shared_until(boot_clock::time_point limit,
                                                                        acquire_options how = acquire_options()) const {
        return readers().try_acquire_until(limit, std::move(how));
    }
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_shared_lock(
        Body&& body, with_lock_options how = with_lock_options()) const {
        return readers().with_lock(std::forward<Body>(body), std::move(how));
    }

    /// As a writer or as a reader: the members of as(kind).
    asio::awaitable<lock_guard> acquire(lock_kind kind, acquire_options how = acquire_options()) const {
        return as(kind).acquire(std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire(lock_kind kind,
                                                           acquire_options how = acquire_options()) const {
        return as(kind).try_acquire(std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire_for(lock_kind kind, any_duration limit,
                                                               acquire_options how = acquire_options()) const {
        return as(kind).try_acquire_for(limit, std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire_until(lock_kind kind, boot_clock::time_point limit,
                                                                 acquire_options how = acquire_options()) const {
        return as(kind).try_acquire_until(limit, std::move(how));
    }
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
        lock_kind kind, Body&& body, with_lock_options how = with_lock_options()) const {
        return as(kind).with_lock(std::forward<Body>(body), std::move(how));
    }

    /// Turns a writer into a reader, at its place in the queue and with its token: no other contender gets in between,
    /// and readers that wait behind the writer are let in. One transaction.
    /// @param writing a guard of this lock, from acquire() or its variants without a lock_owner. Given up in any case.
    /// *Fails with* errc::lock_lost when the guard is not held any longer; errc::invalid_argument for a guard that
    /// cannot be downgraded.
    /// *Cancellation*: releases the lock.
    asio::awaitable<lock_guard> downgrade(lock_guard writing) const;

    /// The holders and the waiters, readers and writers, in the order in which they came.
    asio::awaitable<std::vector<contender_info>> contenders() const;
};

}  // namespace zkasio
