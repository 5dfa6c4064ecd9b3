#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio {

/// Several locks at once, of any kind: all or none.
///
/// The locks are acquired one after another, in the order of their paths, regardless of the order of add(), so that two
/// contenders for some of the same locks cannot wait for each other. If one lock fails, the locks that are held already
/// are released, last first, and no more are tried. While the multi_mutex waits for one lock, it has no place in the
/// queues of later ones, and keeps nobody out there.
///
/// *Fairness*: at each lock, the multi_mutex waits for one turn of each contender ahead of it there. The turn of
/// another multi_mutex includes its waits for later locks. If that one is cut off, it keeps its earlier locks until
/// its session ends, after its session timeout.
///
/// If a lock is lost while a later one is waited for (an operator deletes its node), all are given up at once, and
/// acquire() starts over.
///
/// The guard stands for all locks. The guard is lost as soon as one lock is, and for the same reason; commit() checks
/// all. Each lock has its own fencing token, see lock_guard::tokens(): send each receiver the token of the lock that
/// protects it. token() is the largest one; a contender that waited for one lock alone may get that lock next with a
/// smaller token, so that a receiver that compares with token() refuses it.
///
/// Cost at the servers: that of each lock. Locks that are held while others are waited for count in
/// client_options::ephemeral_budget(): n multi_mutexes of k locks that acquire at the same time need room for k n
/// nodes. With less, acquire() fails with errc::too_many_ephemerals, or, beside other clients that do the same, waits
/// as for a lock.
///
/// path() lists the paths of all locks, in order, separated by commas: for messages. acquire_options::on_position()
/// tells nothing. acquire() fails with the error of the first lock that fails; with errc::invalid_argument when there
/// is no lock in the multi_mutex, when a lock is another client's, and for an owner(): give an owner() to add(), and
/// survive_expiry() to acquire(). try_acquire() also fails with errc::lock_lost when one lock is lost before the others
/// are acquired.
class ZKASIO_EXPORT multi_mutex final : public lockable {
public:
    /// @param zk the client of all the locks.
    explicit multi_mutex(client zk) : lockable(std::move(zk), {}) {}

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
        else if constexpr (requires { { lock.request(how...) } -> std::derived_from<lockable>; })
            return add(lock.request(how...));
        else if constexpr (requires { { lock.as(how...) } -> std::derived_from<lockable>; })
            return add(lock.as(how...));
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
        if constexpr (requires { { lock.readers() } -> std::derived_from<lockable>; })
            return add(lock.readers());
        else
            return insert_other(
                lock.path(), [lock] { return lock.acquire_shared(); }, [lock] { return lock.try_acquire_shared(); });
    }

protected:
    lock_attempt attempts(acquire_options how) const override;
    std::exception_ptr refusal() const override;

private:
    struct member {
        std::shared_ptr<const lockable> lock;
        acquire_options how;
    };
    multi_mutex& insert(member m);
    multi_mutex& insert_all(const multi_mutex& inner, const acquire_options& how);
    multi_mutex& insert_other(std::string path, std::function<asio::awaitable<lock_guard>()> acquire,
                              std::function<asio::awaitable<std::optional<lock_guard>>()> try_acquire);
    void check_client(const asio::any_io_executor& strand, const operations& zk, const std::string& path) const;
    struct taken {
        std::vector<std::shared_ptr<lock_claim>> claims;  // of all locks; if empty, see `lost`
        std::string lost;  // node of a lock lost before all were acquired; "": another contender has one
    };
    static asio::awaitable<taken> take_in_order(multi_mutex self, session on, bool wait, bool first_attempt);
    static asio::awaitable<std::optional<lock_guard>> take(multi_mutex self, acquire_options how, bool wait);

    std::vector<member> members_;  // in the order of their paths
};

}  // namespace zkasio
