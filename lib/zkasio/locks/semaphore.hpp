#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

/// The number of permits of a semaphore: fixed, or kept in a node, where it may change while requests wait.
class ZKASIO_EXPORT permits {
public:
    /// All programs that share the semaphore have to name the same number, at least 1.
    static permits fixed(int n);
    /// The number in the data of the node `path`: an int of 4 bytes, the highest first, as Curator's SharedCount writes
    /// it. If the number shrinks, no permit is lost; new permits are only given when enough have come back. A request
    /// for more permits than the current number waits until the number is high enough.
    static permits counted_by(std::string path);

    int number() const noexcept { return number_; }
    const std::string& path() const noexcept { return path_; }  ///< empty: fixed

private:
    friend class permit_request;
    permits(int number, std::string path) : number_(number), path_(std::move(path)) {}
    int number_;
    std::string path_;
};

class semaphore_options : public lock_options<semaphore_options> {
public:
    semaphore_options() {}
};

/// A request for several permits of a semaphore, as a lock. Returned by semaphore::request().
///
/// acquire() also fails with errc::invalid_argument for less than one permit, for more than a fixed number of permits
/// or than 10 000, and for an owner(): each request has permits of its own. on_position() tells the place among the
/// requests that wait for their turn; when the turn has come, the request only waits for permits, and no more positions
/// are told. try_acquire() returns nothing also while another request is being served.
class ZKASIO_EXPORT permit_request final : public lockable {
public:
    int permits_wanted() const noexcept { return n_; }

protected:
    lock_attempt attempts(acquire_options how) const override;

private:
    friend class semaphore;
    permit_request(client zk, std::string path, permits max, semaphore_options options, int n);
    asio::awaitable<std::vector<lock_guard>> acquire_each() const;

    permits max_;
    semaphore_options options_;
    int n_;
};

/// A number of permits, for all processes that name the same `path`.
///
/// Nodes and algorithm are those of Curator's InterProcessSemaphoreV2: a request acquires the mutex `<path>/locks`,
/// creates a node for each of its permits below `<path>/leases`, and waits until there are no more nodes than permits.
/// So permits are given in the order of the requests, one request for many permits is not overtaken by small ones, and
/// only one waiter watches the leases.
///
/// A guard stands for the permits of one request, and is lost as soon as one of their nodes is. All members of
/// lock_guard apply: held(), token() (rises with each request), lost(), commit(), release().
///
/// One object may be used by any number of coroutines at once, on any executors. Copies name the same semaphore.
class ZKASIO_EXPORT semaphore {
public:
    /// @param path a directory of its own; created as a container when it is missing. Throws errc::invalid_path, and
    /// errc::invalid_argument for less than one permit.
    semaphore(client zk, std::string path, permits max, semaphore_options options = semaphore_options());

    /// A request for `n` permits, all or none, to be passed on as a lockable. Copies request as many.
    permit_request request(int n = 1) const { return {zk_, path_, max_, options_, n}; }

    /// As the members of request(n) of the same names.
    asio::awaitable<lock_guard> acquire(int n = 1, acquire_options how = acquire_options()) const {
        return request(n).acquire(std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire(int n = 1, acquire_options how = acquire_options()) const {
        return request(n).try_acquire(std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire_for(any_duration limit, int n = 1,
                                                               acquire_options how = acquire_options()) const {
        return request(n).try_acquire_for(limit, std::move(how));
    }
    asio::awaitable<std::optional<lock_guard>> try_acquire_until(boot_clock::time_point limit, int n = 1,
                                                                 acquire_options how = acquire_options()) const {
        return request(n).try_acquire_until(limit, std::move(how));
    }
    /// Acquires one permit, runs `body(guard)`, and releases. See lockable::with_lock().
    template <class Body>
    asio::awaitable<detail::body_value<Body, lock_guard&>> with_permit(
        Body&& body, with_lock_options how = with_lock_options()) const {
        return request().with_lock(std::forward<Body>(body), std::move(how));
    }

    /// `n` permits, all or none, as `n` guards that can be released one by one.
    asio::awaitable<std::vector<lock_guard>> acquire_each(int n) const;

    /// The permits that are in use, one entry each, in the order in which they were given; the last few may belong to a
    /// request that still waits.
    asio::awaitable<std::vector<contender_info>> holders() const;
    /// The request that is being served and the requests that wait for their turn, in order.
    asio::awaitable<std::vector<contender_info>> waiting() const;

    const std::string& path() const noexcept { return path_; }

private:
    client zk_;
    std::string path_;
    permits max_;
    semaphore_options options_;
};

}  // namespace zkasio
