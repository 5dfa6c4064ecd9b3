#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio {

class multi_mutex_options {
public:
    multi_mutex_options() {}
    /// Never queue for a lock before the ones in front of it are ours, also where all are mutexes. To be set, on every
    /// multi_mutex of these locks, when somebody holds one of them while he waits for another that comes behind it in
    /// the order of paths: those that have it and those that do not may wait for each other for ever.
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
/// the largest. In one transaction all have the same. Where they are taken one after another, somebody who waited for
/// one of them alone may get it next with a smaller token: whatever compares tokens refuses him until he has given it
/// back and acquired it again.
///
/// path() is that of all, in order, separated by commas: for messages. acquire() fails with what the first that fails
/// fails with; with errc::invalid_argument when there is no lock in it, when they are not of this client, and for an
/// owner(): give that to add(), and survive_expiry() to acquire(). try_acquire() also fails with errc::lock_lost when
/// one is lost before the others are ours. acquire_options::on_position() tells nothing.
class ZKASIO_EXPORT multi_mutex final : public lockable {
public:
    /// @param zk the client of all the locks.
    explicit multi_mutex(client zk, multi_mutex_options options = multi_mutex_options());

    /// Any lockable: `add(mutex)`, `add(mutex, acquire_options().owner(me))`; and any other lock that has `path()`,
    /// `acquire(how...)` and `try_acquire(how...)`: `add(semaphore, 3)`, `add(shared_mutex, lock_kind::shared)`.
    /// Of a multi_mutex its locks are added, each at its own place in the order. Throws errc::invalid_argument for a
    /// path that is there already, and for survive_expiry(), which is for all of them: see acquire().
    template <class Lock, class... How>
        requires(!std::is_convertible_v<Lock, std::shared_ptr<const lockable>>)
    multi_mutex& add(Lock lock, How... how) {
        if constexpr (std::is_base_of_v<lockable, Lock> && std::is_constructible_v<acquire_options, How...>)
            return insert({std::make_shared<const Lock>(std::move(lock)), acquire_options(std::move(how)...)});
        else
            return insert_other(
                lock.path(), [lock, how...] { return lock.acquire(how...); },
                [lock, how...] { return lock.try_acquire(how...); });
    }
    /// The same for one of whichever kind, which others may share.
    multi_mutex& add(std::shared_ptr<const lockable> lock, acquire_options how = acquire_options()) {
        return insert({std::move(lock), std::move(how)});
    }
    /// As a reader: a lock that has `acquire_shared()` and `try_acquire_shared()`.
    template <class Lock>
    multi_mutex& add_shared(Lock lock) {
        return insert_other(
            lock.path(), [lock] { return lock.acquire_shared(); }, [lock] { return lock.try_acquire_shared(); });
    }

protected:
    lock_attempt attempts(acquire_options how) const override;

private:
    struct member {
        std::shared_ptr<const lockable> lock;
        acquire_options how;
    };
    multi_mutex& insert(member m);
    multi_mutex& insert_all(const multi_mutex& inner, const acquire_options& how);
    multi_mutex& insert_other(std::string path, std::function<asio::awaitable<lock_guard>()> acquire,
                              std::function<asio::awaitable<std::optional<lock_guard>>()> try_acquire);
    bool together() const;
    void check_client(const asio::any_io_executor& strand, const std::string& path) const;
    struct taken {
        std::vector<std::shared_ptr<lock_claim>> claims;  // all; or none:
        std::int64_t token = 0;
        std::string lost;  // the node of one that was lost before all were ours; "": somebody has one of them
    };
    static asio::awaitable<taken> take_together(multi_mutex self, session on, bool wait);
    static asio::awaitable<taken> take_one_by_one(multi_mutex self, session on, bool wait);
    static asio::awaitable<std::optional<lock_guard>> take(multi_mutex self, acquire_options how, bool wait);

    multi_mutex_options options_;
    std::vector<member> members_;  // in the order of their paths
};

}  // namespace zkasio
