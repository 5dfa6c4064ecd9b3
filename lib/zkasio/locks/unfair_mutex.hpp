#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace zkasio {

class ZKASIO_EXPORT unfair_mutex_options {
public:
    unfair_mutex_options() {}
    /// Written into the node: who holds it. What holder() returns.
    unfair_mutex_options& data(bytes d) { data_ = std::move(d).take(); return *this; }
    /// Of the node, and of directories created for it (open_acl()).
    unfair_mutex_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }
    /// When the node goes, each waiter sleeps for a random time before it tries again, so that not all come at once: up
    /// to `first` (10 ms), and twice as much after each attempt in vain, up to `most` (500 ms; at most a day).
    unfair_mutex_options& back_off(std::chrono::milliseconds first, std::chrono::milliseconds most);

    const std::string& data() const noexcept { return data_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    std::chrono::milliseconds first_back_off() const noexcept { return first_; }
    std::chrono::milliseconds most_back_off() const noexcept { return most_; }

private:
    std::string data_;
    zkasio::acl acl_ = open_acl();
    std::chrono::milliseconds first_{10}, most_{500};
};

/// The simple lock: one ephemeral node. Whoever manages to create it has the lock; the others watch it and try again
/// when it is gone. For flags ("who leads?") and for locks with few contenders. Not fair: luck decides, and somebody
/// may wait for ever; every release wakes all waiting processes (of one process only one coroutine at a time).
///
/// For more than that see mutex. In particular commit() is refused here: a node of the same name may be somebody
/// else's, so it proves nothing. When somebody deletes the node by hand, the holder notices within a quarter of the
/// session timeout. A release looks first whose node it is (two round trips), so that it does not remove the next
/// holder's.
///
/// One object may be used by any number of coroutines at once, on any executors. Copies name the same lock.
class ZKASIO_EXPORT unfair_mutex {
public:
    /// @param path of the node. Its parents are created as containers when they are missing. Throws errc::invalid_path.
    unfair_mutex(client zk, std::string path, unfair_mutex_options options = unfair_mutex_options());

    /// *Completes when* the lock is ours. *Fails with* what operations fail with; errc::session_expired when the
    /// session ends while waiting. *Cancellation*: leaves no node and no watch behind.
    asio::awaitable<lock_guard> acquire() const;
    /// Nothing when somebody else has it. See mutex::try_acquire().
    asio::awaitable<std::optional<lock_guard>> try_acquire() const;
    /// Nothing when the time is over. See mutex::try_acquire_for().
    asio::awaitable<std::optional<lock_guard>> try_acquire_for(std::chrono::nanoseconds limit) const;
    asio::awaitable<std::optional<lock_guard>> try_acquire_until(boot_clock::time_point limit) const;

    /// See mutex::with_lock().
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_lock(
        Body&& body, revocation_policy policy = revocation_policy::ignore()) const {
        return lock_detail::with_lock_of(path_, acquire(), std::forward<Body>(body), policy);
    }

    /// Who has it; nothing when nobody does.
    asio::awaitable<std::optional<contender_info>> holder() const;

    const std::string& path() const noexcept { return path_; }

private:
    client zk_;
    std::string path_;
    unfair_mutex_options options_;
};

}  // namespace zkasio
