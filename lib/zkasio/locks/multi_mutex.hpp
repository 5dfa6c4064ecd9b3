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
    /// Queue for a lock only when the locks before it are held, also where all are mutexes. To be set, on every
    /// multi_mutex of these locks, when a contender holds one of the locks and waits for another one whose path is
    /// later in the order: a multi_mutex with the option and one without may wait for each other for ever.
    multi_mutex_options& one_after_another() { one_by_one_ = true; return *this; }
    bool takes_one_after_another() const noexcept { return one_by_one_; }

private:
    bool one_by_one_ = false;
};

/// Several locks at once, of any kind: all or none.
///
/// The locks are acquired in the order of their paths, regardless of the order of add(), so that two contenders for
/// some of the same locks cannot wait for each other. If one lock fails, the locks that are held already are released,
/// last first, and no more are tried.
///
/// If all are mutexes, one transaction enters all queues: one round trip instead of one for each lock, and a fair place
/// in each queue from the beginning. But while the multi_mutex waits for one lock, it blocks contenders behind it in
/// the other queues: a program that holds the first lock and then acquires the second on its own waits for ever. See
/// multi_mutex_options::one_after_another().
///
/// If one lock is lost while the others are still waited for (an operator deletes its node), all are given up at once,
/// and acquire() starts over. Where one transaction enters all queues, the new attempt does so, too: the order stays
/// the same in all queues.
///
/// The guard stands for all locks. The guard is lost as soon as one lock is, and for the same reason; commit() checks
/// all, token() is the largest token. With one transaction, all locks have the same token. If the locks are acquired
/// one after another, a contender that waited for one lock alone may get that lock next with a smaller token: a
/// receiver that compares tokens refuses that contender until it has released and acquired the lock again.
///
/// path() lists the paths of all locks, in order, separated by commas: for messages. acquire_options::on_position()
/// tells nothing. acquire() fails with the error of the first lock that fails; with errc::invalid_argument when there
/// is no lock in the multi_mutex, when a lock is another client's, and for an owner(): give an owner() to add(), and
/// survive_expiry() to acquire(). try_acquire() also fails with errc::lock_lost when one lock is lost before the others
/// are acquired.
class ZKASIO_EXPORT multi_mutex final : public lockable {
public:
    /// @param zk the client of all the locks.
    explicit multi_mutex(client zk, multi_mutex_options options = multi_mutex_options());

    /// Adds any lockable: `add(mutex)`, `add(mutex, acquire_options().owner(me))`; and any other lock that has
    /// `path()`, `acquire(how...)` and `try_acquire(how...)`: `add(semaphore, 3)`, `add(shared_mutex,
    /// lock_kind::shared)`. For a multi_mutex, its locks are added, each at its own place in the order. Throws
    /// errc::invalid_argument for a path that is there already, and for survive_expiry(), which is for all locks
    /// together: see acquire().
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
    /// Adds a lockable of any kind, which may be shared with other code.
    multi_mutex& add(std::shared_ptr<const lockable> lock, acquire_options how = acquire_options()) {
        return insert({std::move(lock), std::move(how)});
    }
    /// Adds, as a reader, a lock that has `acquire_shared()` and `try_acquire_shared()`.
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
        std::vector<std::shared_ptr<lock_claim>> claims;  // of all locks; if empty, see `lost`
        fencing_token token;
        std::string lost;  // node of a lock lost before all were acquired; "": another contender has one
    };
    static asio::awaitable<taken> take_together(multi_mutex self, session on, bool wait);
    static asio::awaitable<taken> take_one_by_one(multi_mutex self, session on, bool wait, bool first_attempt);
    static asio::awaitable<std::optional<lock_guard>> take(multi_mutex self, acquire_options how, bool wait);

    multi_mutex_options options_;
    std::vector<member> members_;  // in the order of their paths
};

}  // namespace zkasio
