#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace zkasio {

class multi_mutex_options {
public:
    multi_mutex_options() {}
    /// Never queue for a lock before the ones in front of it are ours, also where all are mutexes. To be set when
    /// somebody holds one of them while he waits for another that comes behind it in the order of paths.
    multi_mutex_options& one_after_another() { one_by_one_ = true; return *this; }
    bool takes_one_after_another() const noexcept { return one_by_one_; }

private:
    bool one_by_one_ = false;
};

/// Several locks at once, of any kind: all or none.
///
/// They are taken in the order of their paths, whatever the order of add(), so that two who want some of the same locks
/// cannot wait for each other. When one fails, those that are held already are released, last first, and no more are
/// tried.
///
/// Where all are mutexes, one transaction puts us into all queues: one round trip instead of one for each, and a fair
/// place in each from the beginning. While we wait for one of them we stand in the way of others in the rest, though:
/// whoever holds the first and then waits for the second by itself waits for ever. See
/// multi_mutex_options::one_after_another().
///
/// When one is lost while the others are still waited for (an operator deletes its node), all are given up at once, and
/// acquire() starts over: in one transaction, where that is how they are taken, so that the order is the same in all
/// queues.
///
/// The guard stands for all of them: lost as soon as one is, and for the same reason; commit() checks all, token() is
/// the largest.
class ZKASIO_EXPORT multi_mutex {
public:
    /// @param zk the client of all the locks.
    explicit multi_mutex(client zk, multi_mutex_options options = multi_mutex_options());

    /// A lock that has `path()`, `acquire(how...)` and `try_acquire(how...)`: `add(mutex)`, `add(semaphore, 3)`,
    /// `add(mutex, acquire_options().owner(me))`.
    /// Throws errc::invalid_argument for a path that is there already.
    template <class Lock, class... How>
    multi_mutex& add(Lock lock, How... how) {
        member m{lock.path(),
                 [lock, how...] { return lock.acquire(how...); },
                 [lock, how...] { return lock.try_acquire(how...); },
                 {}};
        if constexpr (std::is_same_v<Lock, mutex> && sizeof...(How) == 0) m.as_mutex = lock;
        return insert(std::move(m));
    }
    /// As a reader: a lock that has `acquire_shared()` and `try_acquire_shared()`.
    template <class Lock>
    multi_mutex& add_shared(Lock lock) {
        return insert(
            {lock.path(), [lock] { return lock.acquire_shared(); }, [lock] { return lock.try_acquire_shared(); }, {}});
    }

    /// *Completes when* all are ours. *Fails with* what the first that fails fails with; errc::invalid_argument when
    /// there is none, or when they are not of this client. *Cancellation*: leaves no node and no watch behind.
    asio::awaitable<lock_guard> acquire() const;
    /// Nothing when somebody has one of them. *Fails with* errc::lock_lost when one is lost before the others are ours.
    /// See mutex::try_acquire().
    asio::awaitable<std::optional<lock_guard>> try_acquire() const;
    /// Nothing when the time is over; one limit for all. See mutex::try_acquire_for().
    asio::awaitable<std::optional<lock_guard>> try_acquire_for(std::chrono::nanoseconds limit) const;
    asio::awaitable<std::optional<lock_guard>> try_acquire_until(boot_clock::time_point limit) const;

    /// See mutex::with_lock().
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
        Body&& body, revocation_policy policy = revocation_policy::ignore()) const {
        return lock_detail::with_lock_of(path(), acquire(), std::forward<Body>(body), policy);
    }

    /// Of all, in order, separated by commas: for messages.
    std::string path() const;

private:
    struct member {
        std::string path;
        std::function<asio::awaitable<lock_guard>()> acquire;
        std::function<asio::awaitable<std::optional<lock_guard>>()> try_acquire;
        std::optional<mutex> as_mutex;
    };
    multi_mutex& insert(member m);
    bool together() const;
    void check_client(const asio::any_io_executor& strand, const std::string& path) const;
    struct taken {
        std::vector<std::shared_ptr<lock_claim>> claims;  // all; or none:
        std::int64_t token = 0;
        std::string lost;  // the node of one that was lost before all were ours; "": somebody has one of them
    };
    static asio::awaitable<taken> take_together(multi_mutex self, session on, bool wait);
    static asio::awaitable<taken> take_one_by_one(multi_mutex self, session on, bool wait);
    static asio::awaitable<std::optional<lock_guard>> take(multi_mutex self, bool wait);

    client zk_;
    multi_mutex_options options_;
    std::vector<member> members_;  // in the order of their paths
};

}  // namespace zkasio
