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
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

class shared_mutex_options : public queue_options<shared_mutex_options> {
public:
    shared_mutex_options() {}
    /// Readers who come while readers hold the lock share it at once, whoever is waiting. Not fair: a steady stream of
    /// them keeps writers out for ever. Costs a reader one more round trip. The token of one who overtakes
    /// a writer is larger than that writer's. May differ from one program to the next: the others need not know.
    shared_mutex_options& prefer_readers() { prefer_readers_ = true; return *this; }
    bool prefers_readers() const noexcept { return prefer_readers_; }

private:
    bool prefer_readers_ = false;
};

/// One of the two ways to take a shared_mutex, as a lock by itself: what shared_mutex::as() returns. Copies name the
/// same lock.
class ZKASIO_EXPORT shared_mutex_side : public lockable {
public:
    lock_kind kind() const noexcept { return kind_; }

protected:
    lock_attempt attempts(acquire_options how) const override;
    asio::awaitable<lock_guard> wait_for_lock(acquire_options how) const override;

private:
    friend class shared_mutex;
    shared_mutex_side(client zk, std::string path, lock_kind kind, bool prefer_readers)
        : lockable(std::move(zk), std::move(path)), kind_(kind), prefer_readers_(prefer_readers) {}

    std::shared_ptr<const lock_detail::lock_spec> spec_;
    lock_kind kind_;
    bool prefer_readers_;
};

/// A lock that many readers share or one writer has alone, for all processes that name the same `path`.
///
/// Readers and writers queue as ephemeral-sequential children of `path`, first come, first served: a reader waits for
/// the last writer ahead of it, a writer for everybody ahead. So readers between two writers share, one release wakes
/// only those who go next, and writers are not starved. The nodes are those of Curator's InterProcessReadWriteLock
/// (ZooKeeper's recipe "shared locks").
///
/// A writer can go on as a reader, see downgrade(). A reader cannot become a writer: two who try would wait for each
/// other. Where that can be noticed (a lock_owner, or the body of with_shared_lock()) it fails with
/// errc::would_deadlock.
///
/// All that mutex says of ownership, fencing, sharing of one object, waiting and cancellation holds here too.
///
/// As a lockable it is its writers' side; the readers' is readers().
class ZKASIO_EXPORT shared_mutex final : public shared_mutex_side {
public:
    /// @param path a directory of its own; created as a container when it is missing. Throws errc::invalid_path.
    shared_mutex(client zk, std::string path, shared_mutex_options options = shared_mutex_options());

    /// As a reader: together with other readers.
    shared_mutex_side readers() const { return as(lock_kind::shared); }
    /// As a writer or as a reader, for those who find out only then. (Do not write `w ? co_await m.acquire() : co_await
    /// m.acquire_shared()`: g++ 12 destroys what comes of that twice.)
    shared_mutex_side as(lock_kind kind) const;

    /// As a writer: alone. See lockable.
    using lockable::acquire;
    using lockable::try_acquire;
    using lockable::try_acquire_for;
    using lockable::try_acquire_until;
    using lockable::with_lock;

    /// As a reader: the same of readers().
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
        Body&& body, revocation_policy policy = revocation_policy::ignore()) const {
        return readers().with_lock(std::forward<Body>(body), policy);
    }

    /// As `kind` says: the same of as(kind).
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
        lock_kind kind, Body&& body, revocation_policy policy = revocation_policy::ignore()) const {
        return as(kind).with_lock(std::forward<Body>(body), policy);
    }

    /// A writer goes on as a reader, at its place in the queue and with its token: nobody gets in between, and readers
    /// who wait behind it are let in. One transaction.
    /// @param writing a guard of this lock, of acquire() or its like without a lock_owner. Given up in any case.
    /// *Fails with* errc::lock_lost when it is not held any more; errc::invalid_argument for a guard that cannot be
    /// downgraded. *Cancellation*: releases the lock.
    asio::awaitable<lock_guard> downgrade(lock_guard writing) const;

    /// Who holds the lock and who waits for it, readers and writers, in the order in which they came.
    asio::awaitable<std::vector<contender_info>> contenders() const;
};

}  // namespace zkasio
