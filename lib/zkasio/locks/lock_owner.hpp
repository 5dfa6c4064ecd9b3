#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/export.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/lock_claim.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

/// The owner in an acquire, for code that may hold the lock already: a token that a coroutine creates and passes on to
/// the functions that it calls. An acquire with the token of the lock's holder has the lock at once. The lock is
/// released when all guards of the owner are.
///
/// Ownership is never by thread or by coroutine: without a token, a coroutine that acquires twice waits for itself.
///
/// A handle: copies are the same owner. May be used from any thread. Coroutines that acquire a lock concurrently for
/// one owner share the grant of the first.
class ZKASIO_EXPORT lock_owner {
public:
    lock_owner();

    // ------------------------------------------------------------------------------------ for writers of recipes

    /// If this owner holds the lock `key`: a share of its claim. Otherwise calls `acquire()`, and returns a share of
    /// the claim that it returns; null when that is null. The claim is given up with its last share. @param path of the
    /// lock, for messages.
    /// *Fails with* errc::would_deadlock for an exclusive lock when the owner shares it already; errc::lock_lost when
    /// the owner's lock has been lost and one of its guards was not released yet: a body under that guard must not go
    /// on under another grant as if the lock had never been lost.
    template <class Acquire>
    asio::awaitable<std::shared_ptr<lock_claim>> acquire(client zk, std::string key, std::string path, lock_kind kind,
                                                         Acquire&& acquire) const {
        return take(state_, std::move(zk), std::move(key), std::move(path), kind, others::wait,
                    detail::safe_function<acquire_function>(std::forward<Acquire>(acquire)));
    }
    /// As acquire(); null instead of waiting for another coroutine of this owner that is just acquiring.
    template <class Acquire>
    asio::awaitable<std::shared_ptr<lock_claim>> try_acquire(client zk, std::string key, std::string path,
                                                             lock_kind kind, Acquire&& acquire) const {
        return take(state_, std::move(zk), std::move(key), std::move(path), kind, others::refuse,
                    detail::safe_function<acquire_function>(std::forward<Acquire>(acquire)));
    }

private:
    struct state;
    enum class others { wait, refuse };
    using acquire_function = std::function<asio::awaitable<std::shared_ptr<lock_claim>>()>;
    static asio::awaitable<std::shared_ptr<lock_claim>> take(std::shared_ptr<state> self, client zk, std::string key,
                                                             std::string path, lock_kind kind, others when_acquiring,
                                                             acquire_function acquire);
    std::shared_ptr<state> state_;
};

}  // namespace zkasio
