#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutine_safety.hpp>
#include <zkasio/export.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/lock_claim.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

/// Who acquires a lock, for those who may have it already: a token that a coroutine creates and passes on to whatever
/// it calls. Whoever acquires a lock with the token of its holder has it at once; it is released when all its guards
/// are.
///
/// Ownership is never by thread or by coroutine: without a token, acquiring a lock twice means waiting for oneself.
///
/// A handle: copies are the same owner. May be used from any thread; coroutines that acquire at the same time for one
/// owner share what the first of them gets.
class ZKASIO_EXPORT lock_owner {
public:
    lock_owner();

    /// For writers of recipes: what this owner has of the lock `key`, or else `acquire()`, counted. Null when that
    /// returns null. @param path of the lock, for messages. *Fails with* errc::would_deadlock for an exclusive lock
    /// when the owner shares it already; errc::lock_lost when the owner's lock has been lost and one of its guards was
    /// not released yet: what runs under that guard must not go on under another grant as if it had never been without.
    template <class Acquire>
    asio::awaitable<std::shared_ptr<lock_claim>> acquire(client zk, std::string key, std::string path, lock_kind kind,
                                                         Acquire&& acquire) const {
        return take(state_, std::move(zk), std::move(key), std::move(path), kind, others::wait,
                    detail::safe_function<acquire_function>(std::forward<Acquire>(acquire)));
    }
    /// The same; null instead of waiting for another coroutine of this owner that is just acquiring.
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
