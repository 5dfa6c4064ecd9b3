#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/fencing_token.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

/// A held lock of any kind. Move-only; the destructor releases the lock: a guard that is discarded holds nothing.
///
/// *Lifetime*: until it is released, the guard keeps the client open, also when all copies of the client and the lock
/// object are gone: a function may make a client and a lock, and return the guard. (client::close() still ends the
/// guard.) Once release() has completed, or the guard is destroyed, the guard keeps nothing open. Released or not, it
/// must not outlive the execution context of its client.
///
/// If a guard is lost while its session lives, its nodes are removed in the background without a call of release(). All
/// waiting contenders then go on: contenders of other clients at once, contenders of this client when the bodies of
/// run() and with_lock() under this guard have ended. (Until then they have no places in the queue, and contenders of
/// other clients may overtake them.) So the lost guard may be kept, and `guard = co_await lock.acquire()` gets the lock
/// again.
///
/// Ownership is a lease. `held()` is false before another contender can get the lock, as far as a client can know; only
/// token() and commit() are proof.
///
/// *When the lock's node is removed* by an operator, another client has the lock at once, and this client hears of the
/// removal from its watch on the node. If the lock was waited for, the watch is set in advance. Otherwise the watch is
/// set when the lock has been held for a quarter of the session timeout, since most locks are not held for so long: a
/// removal before that is noticed then, up to a quarter of the session timeout late, or by a heartbeat or commit().
/// (A leadership is watched from its grant on.) This holds while the connection works. If the connection is silent, the
/// client hears nothing of the removal, and held() is true until the lease ends, at most a session timeout later.
///
/// May be used from any executor; `held()`, `held_until()` from any thread. The coroutines of the members keep what
/// they need: the guard may be moved before they are awaited, and while they run.
/// With g++ 12, `c ? co_await a.acquire() : co_await b.acquire()` destroys a guard twice: see coroutine_safety.hpp.
class [[nodiscard]] ZKASIO_EXPORT lock_guard {
public:
    /// An empty guard: as a released one, and with an empty path().
    lock_guard() noexcept : released_(true) {}
    lock_guard(lock_guard&& other) noexcept;
    lock_guard& operator=(lock_guard&& other) noexcept;
    ~lock_guard() { give_up(); }

    fencing_token token() const noexcept { return token_; }
    /// Path of the lock's node; of the first node, if there are several.
    const std::string& path() const noexcept;
    const std::vector<std::string>& paths() const noexcept;
    /// The fencing token of each of paths(): all are token(), but for a multi_mutex, where each lock has its own.
    std::vector<fencing_token> tokens() const { return claim_ ? claim_->tokens() : std::vector<fencing_token>(); }

    /// The sequence number that the server has put at the end of the name of path(): the place in the queue, as
    /// operators see it. Nothing for an unfair_mutex, whose node has none, for a multi_mutex, whose nodes stand in
    /// several queues, and for an empty guard. The numbers start again when the directory is re-created, and wrap
    /// around: to compare grants, use token().
    std::optional<std::int32_t> sequence() const noexcept { return claim_ ? claim_->sequence() : std::nullopt; }

    /// The number that this guard stands for. Nothing for all locks but `slots`, and for an empty guard.
    std::optional<std::uint32_t> slot() const noexcept { return claim_ ? claim_->slot() : std::nullopt; }

    bool held() const noexcept { return !is_released() && claim_->held(); }
    boot_clock::time_point held_until() const noexcept {
        return is_released() ? boot_clock::time_point() : claim_->held_until();
    }
    /// loss_reason::none as long as held() is true.
    loss_reason reason() const noexcept { return is_released() ? loss_reason::released : claim_->reason(); }

    /// *Completes when* the lock is lost or released, with the reason. If a lock_owner has several guards, the lock is
    /// released with the last guard; this holds for revoke_requested(), too.
    asio::awaitable<loss_reason> lost() const;

    /// *Completes when* held_until() is later than `beyond`, at once if it is already, with held_until(): with the
    /// held_until() that is known, the next extension of the lease.
    /// *Fails with* errc::lock_lost; errc::lock_released for a guard that was released or is empty.
    asio::awaitable<boot_clock::time_point> lease_extended(boot_clock::time_point beyond) const;

    /// Applies the transaction if, and only if, the lock is still held when the servers apply the transaction: checks
    /// of the lock's nodes precede its steps. If the servers say that a node is gone, held() is false from then on.
    /// *Fails with* errc::lock_lost; errc::lock_released for a guard that was released or is empty;
    /// errc::invalid_argument under a lock whose nodes prove nothing (unfair_mutex); and else as operations::multi().
    asio::awaitable<std::vector<step_result>> commit(transaction steps) const;

    /// Runs `body()`, a coroutine, until it ends, and returns its result. The lock is not released. If the lock is
    /// lost, the body receives a terminal cancellation. When the body has really ended, run() throws errc::lock_lost;
    /// an exception of the body that is more than a cancellation is nested in this error (std::nested_exception). If
    /// the body has ended with an error with error::outcome_unknown(), such as that of a write that the cancellation
    /// has interrupted, errc::lock_lost has it, too. If the lock is lost already, the body does not begin.
    ///
    /// If a lease is not renewed, the body is cancelled when the lease ends: another contender can get the lock while
    /// the body still ends. With a `stop_margin`, the body is cancelled this time before the end of a lease that was
    /// not renewed, and so has this time to end while it still owns the lock: held() stays true, and commit() goes on.
    /// If the body ends by the cancellation, the lock is lost when it has ended, and with it all other bodies with a
    /// margin: loss_reason::lease_ended. No further one begins. A body that completes nevertheless in time has
    /// completed. While the lease has no more than the margin left, a body waits for a longer lease before it begins.
    /// Reported as a lock_stop_report. A connection that is lost for longer than about a third of the session timeout
    /// less the margin stops the body (with lease_renewal::third, about a quarter).
    /// *Fails with* errc::lock_released for a guard that was released or is empty, also if it is released before run()
    /// is awaited; errc::invalid_argument for a margin that is negative or larger than half the session timeout
    /// less client_options::lease_renewal(): T/4, T/6, and none for lease_renewal::half. The body does not begin then.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body>> run(Body&& body,
                                                  any_duration stop_margin = std::chrono::nanoseconds(0)) const {
        return detail::run_kept(std::forward<Body>(body), &run_body, claim_, is_released(),
                                std::chrono::nanoseconds(stop_margin));
    }

    /// *Completes when* another client or an operator asks for the lock back, see revoke(); that alone changes nothing.
    /// Two reads a call: the node (older versions and Curator's Revoker write there), a queue's directory (revoke()).
    /// *Fails with* errc::lock_lost when the lock is lost first, errc::lock_released when it is given up.
    asio::awaitable<void> revoke_requested() const;

    /// Gives the lock up; from the call on, held() is false. Contenders that wait for the bodies under a lost guard
    /// stop waiting for them. A second call does nothing.
    /// *Completes when* the server has removed the node, or the session (and with it the node) is over.
    /// *Fails with* zk_errc::no_auth when the ACL of the directory no longer lets this client remove nodes: then the
    /// lock is taken until the session ends, or until the ACL allows the removal, which is asked for again in the
    /// background at intervals of up to 45 seconds.
    /// *Cancellation*: ends the wait; the release goes on.
    asio::awaitable<void> release();

    // ------------------------------------------------------------------------------------ for writers of recipes

    /// @param claim granted. @param open client::keep_open() of its client; may be null.
    explicit lock_guard(std::shared_ptr<lock_claim> claim, std::shared_ptr<const void> open = nullptr);
    const std::shared_ptr<lock_claim>& claim() const noexcept { return claim_; }
    /// As claim(), but the guard counts as released: from now on the caller gives the claim up and keeps the client
    /// open, see client::keep_open().
    std::shared_ptr<lock_claim> take_claim() noexcept {
        released_.store(true, std::memory_order_release);
        open_.reset();
        return claim_;
    }

private:
    bool is_released() const noexcept { return released_.load(std::memory_order_acquire); }
    static asio::awaitable<void> run_body(std::function<asio::awaitable<void>()> body,
                                          std::shared_ptr<lock_claim> claim, bool released,
                                          std::chrono::nanoseconds stop_margin);
    std::shared_ptr<lock_claim> give_up() noexcept;

    std::shared_ptr<const void> open_;  // first, so destroyed last: after all that the claim still has to report
    std::shared_ptr<lock_claim> claim_;
    fencing_token token_;
    std::atomic<bool> released_{false};  // true also for a guard that was moved from
};

// ---------------------------------------------------------------------------------------- for writers of recipes

namespace lock_detail {
/// Throws errc::lock_lost or errc::lock_released if the lock is not held, and errc::invalid_argument for a lock whose
/// nodes prove nothing: to be called before a transaction that checks the nodes of `claim`.
/// @param operation for messages.
ZKASIO_EXPORT void require_held(const std::shared_ptr<lock_claim>& claim, bool released, std::string_view operation);
/// Throws errc::lock_lost or errc::lock_released if that is why the transaction failed with `e`; held() is then false.
ZKASIO_EXPORT void throw_if_lost(const std::shared_ptr<lock_claim>& claim, const error& e, std::string_view operation);

/// Implements lock_guard::run(). @param operation for messages. @param grace the body is stopped so long after another
/// client has asked for the lock; nothing: it is not.
ZKASIO_EXPORT asio::awaitable<void> run_under(std::shared_ptr<lock_claim> claim, bool released,
                                              std::function<asio::awaitable<void>()> body,
                                              std::chrono::nanoseconds stop_margin, std::string operation,
                                              std::optional<std::chrono::nanoseconds> grace = std::nullopt);

/// Runs `body`, and notes in `thrown` what it has thrown: a cancellation by a stop reaches nobody otherwise. Both have
/// to outlive what is returned.
std::function<asio::awaitable<void>()> noting(const std::function<asio::awaitable<void>()>& body,
                                              std::exception_ptr& thrown);

/// Implements lock_guard::commit(). @param operation for messages.
ZKASIO_EXPORT asio::awaitable<std::vector<step_result>> commit_under(std::shared_ptr<lock_claim> claim, bool released,
                                                                     transaction steps, std::string operation);
}  // namespace lock_detail

}  // namespace zkasio
