#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/kept_body.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

class client;

/// A number that rises with every grant of a lock, over the whole ensemble, for as long as the servers keep their data:
/// an ensemble that was wiped, or restored from a backup, gives numbers out again that it has given out before. Send it
/// along with what the lock protects, and let the receiver refuse smaller ones: then a holder that was paused and has
/// lost the lock without noticing does no harm. It is the czxid of the lock's node (of several: the largest). One that
/// is made without arguments is 0, which is smaller than that of any grant.
class fencing_token {
public:
    fencing_token() noexcept = default;
    explicit fencing_token(std::int64_t value) noexcept : value_(value) {}
    std::int64_t value() const noexcept { return value_; }
    friend auto operator<=>(const fencing_token&, const fencing_token&) = default;

private:
    std::int64_t value_ = 0;
};

/// A lock, of whichever kind, that is held. Move-only; releases when destroyed.
///
/// *Lifetime*: until it is released, the guard keeps the client open, also when all copies of that and the lock object
/// are gone: a function may make a client and a lock, and return the guard. (client::close() ends it all the same.)
/// Once release() has completed, or the guard is destroyed, it lets go. Released or not, it must not outlive the
/// execution context of its client.
///
/// A guard that is lost while its session lives gives its nodes back by itself: they are removed in the background, and
/// all who wait for the lock go on, other clients at once, others of this client when the bodies of run() and
/// with_lock() under this guard have ended. So the object may be kept, and `guard = co_await lock.acquire()` gets the
/// lock again.
///
/// Ownership is a lease. `held()` says no before anybody else can get the lock, as far as a client can know; only
/// token() and commit() are proof.
///
/// *When the lock's node is removed* by an operator, another client has the lock at once, and this one hears of it
/// from the watch on the node. That is set in advance where the lock was waited for, and else when it has been held for
/// a quarter of the session timeout, since most locks are not held for so long: a removal before that is noticed by the
/// first heartbeat, up to a quarter of the session timeout late, or by commit(). (A leadership is watched from its
/// grant on.)
///
/// May be used from any executor; `held()`, `held_until()` from any thread. The coroutines that it returns take along
/// what they need: it may be moved before they are awaited, and while they run.
/// With g++ 12, `c ? co_await a.acquire() : co_await b.acquire()` destroys a guard twice: see coroutine_safety.hpp.
class ZKASIO_EXPORT lock_guard {
public:
    /// Holds nothing: as one that was released, and with an empty path().
    lock_guard() noexcept : released_(true) {}
    /// For writers of recipes. @param claim granted. @param open client::keep_open() of its client; may be null.
    explicit lock_guard(std::shared_ptr<lock_claim> claim, std::shared_ptr<const void> open = nullptr);
    lock_guard(lock_guard&& other) noexcept;
    lock_guard& operator=(lock_guard&& other) noexcept;
    ~lock_guard() { give_up(); }

    fencing_token token() const noexcept { return token_; }
    /// Of the node that stands for it; of the first, if there are several.
    const std::string& path() const noexcept;
    const std::vector<std::string>& paths() const noexcept;

    /// The number that the server has put at the end of the name of path(): the place in the queue, as operators see
    /// it. Nothing for an unfair_mutex, whose node has none, for a multi_mutex, whose nodes stand in several queues,
    /// and for an empty guard. It begins anew when the directory does, and wraps around: to compare grants, use
    /// token().
    std::optional<std::int32_t> sequence() const noexcept { return claim_ ? claim_->sequence() : std::nullopt; }

    bool held() const noexcept { return !is_released() && claim_->hold().held(); }
    boot_clock::time_point held_until() const noexcept {
        return is_released() ? boot_clock::time_point() : claim_->hold().held_until();
    }
    /// loss_reason::none while nothing is wrong.
    loss_reason reason() const noexcept { return is_released() ? loss_reason::released : claim_->hold().reason(); }

    /// *Completes when* the lock is lost or released, with the reason. Where a lock_owner has several guards, the lock
    /// is released with the last of them; the same for revoke_requested().
    asio::awaitable<loss_reason> lost() const;

    /// Applies the transaction if, and only if, the lock is still ours when the servers apply it: the lock's nodes are
    /// checked in front of its steps.
    /// *Fails with* errc::lock_lost, and else as operations::multi(). When the servers say that a node is gone, held()
    /// is false from then on.
    asio::awaitable<std::vector<step_result>> commit(transaction steps) const;

    /// Runs `body()`, a coroutine, until it ends. When the lock is lost, it gets a terminal cancellation, and when it
    /// has really ended, this throws errc::lock_lost; what the body has thrown is nested in it (std::nested_exception),
    /// if it is more than a cancellation. Under a lock that is lost already no body begins. The lock is not released.
    /// Returns what the body returns. *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body>> run(Body&& body) const {
        return detail::run_kept(std::forward<Body>(body), &run_body, claim_, is_released());
    }

    /// *Completes when* somebody asks for the lock back (see revoke()). Nothing follows from it by itself: whoever asks
    /// hopes that we release soon. *Fails with* errc::lock_lost when the lock is lost first, errc::lock_released when
    /// it is given up.
    asio::awaitable<void> revoke_requested() const;

    /// Gives the lock up; from the call on, held() is false. Who waits for the bodies under a lost guard does not do so
    /// any more.
    /// *Completes when* the server has removed the node, or the session (and with it the node) is over.
    /// *Cancellation*: ends the wait; the release goes on. A second call does nothing.
    asio::awaitable<void> release();

    /// For writers of recipes.
    const std::shared_ptr<lock_claim>& claim() const noexcept { return claim_; }
    /// The same, and it is the caller who gives it up; who also keeps the client open from now on, see
    /// client::keep_open().
    std::shared_ptr<lock_claim> take_claim() noexcept {
        released_.store(true, std::memory_order_release);
        open_.reset();
        return claim_;
    }

private:
    bool is_released() const noexcept { return released_.load(std::memory_order_acquire); }
    static asio::awaitable<void> run_body(std::function<asio::awaitable<void>()> body,
                                          std::shared_ptr<lock_claim> claim, bool released);
    std::shared_ptr<lock_claim> give_up() noexcept;

    std::shared_ptr<const void> open_;  // first, so that it goes last: what the claim still has to say comes before
    std::shared_ptr<lock_claim> claim_;
    fencing_token token_;
    std::atomic<bool> released_{false};  // or moved from
};

/// Asks the holder of a lock to give it back, or a waiter to leave the queue, by writing "__REVOKE__" into its node, as
/// Curator's Revoker does. A leader, or a candidate of an election with the names of Curator's LeaderLatch
/// (name_scheme::curator_latch()), is asked by a line in the data of the directory instead, see directory_note: after a
/// write into its node a LeaderLatch behind it would never lead. It takes the permission to write what is written to.
/// *Fails with* errc::invalid_argument when the data of that directory are somebody else's.
/// @param path of the node, see contenders(). That it is gone is no error.
ZKASIO_EXPORT asio::awaitable<void> revoke(client zk, std::string path);

/// What with_lock() does when somebody asks for the lock back while the body runs.
class revocation_policy {
public:
    /// Nothing. The body may look at lock_guard::revoke_requested().
    static revocation_policy ignore() { return revocation_policy(std::nullopt); }
    /// After this time, the body receives a terminal cancellation, and when it has ended by that, with_lock() throws
    /// errc::revoked; what the body has thrown is nested in it, as when a lock is lost, see lock_guard::run().
    static revocation_policy cancel_after(any_duration grace) { return revocation_policy(grace); }

    const std::optional<std::chrono::nanoseconds>& grace() const noexcept { return grace_; }

private:
    explicit revocation_policy(std::optional<std::chrono::nanoseconds> grace) : grace_(grace) {}
    std::optional<std::chrono::nanoseconds> grace_;
};

/// What runs under a lock.
using lock_body = std::function<asio::awaitable<void>(lock_guard&)>;

namespace lock_detail {
/// What lock_guard::commit() does. @param operation for messages.
ZKASIO_EXPORT asio::awaitable<std::vector<step_result>> commit_under(std::shared_ptr<lock_claim> claim, bool released,
                                                                     transaction steps, std::string operation);

/// @param path of the lock, for messages.
ZKASIO_EXPORT asio::awaitable<void> run_with_lock(lock_body body, std::string path,
                                                  asio::awaitable<lock_guard> acquiring, revocation_policy policy);

/// What the with_lock() members of the locks do.
template <class Body>
asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock_of(std::string path,
                                                                    asio::awaitable<lock_guard> acquiring, Body&& body,
                                                                    revocation_policy policy) {
    return detail::run_kept(std::forward<Body>(body), &run_with_lock, std::move(path), std::move(acquiring), policy);
}
}  // namespace lock_detail

/// Acquires, runs `body(guard)`, a coroutine, and releases; what the with_lock() members of the locks do. See
/// lockable::with_lock().
template <class Body>
asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
    asio::awaitable<lock_guard> acquiring, Body&& body, revocation_policy policy = revocation_policy::ignore()) {
    return lock_detail::with_lock_of({}, std::move(acquiring), std::forward<Body>(body), policy);
}

}  // namespace zkasio
