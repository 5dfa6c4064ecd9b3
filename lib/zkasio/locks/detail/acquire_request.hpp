#pragma once

#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/detail/cohort/place_user.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/if_contended.hpp>
#include <zkasio/locks/queue_position.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace zkasio::lock_detail {

/// The user's position_observer of one acquire, and the position that it was told last.
struct observation {
    explicit observation(position_observer f) : tell(std::move(f)) {}
    /// The acquire has ended: objects that `tell` refers to may be gone. From any thread; waits while `tell` runs on
    /// another one.
    void end() {
        const std::lock_guard lock(telling);
        over = true;
    }
    position_observer tell;
    std::optional<queue_position> told{};
    // Held while `tell` runs: an acquire that is cancelled on another thread does not end before `tell` has returned.
    // Recursive, since `tell` may cancel its own acquire.
    std::recursive_mutex telling;
    bool over = false;  // guarded by `telling`
};

/// The request of a contender: the lock, and how to acquire it.
struct acquire_request {
    acquire_request(lock_spec_ptr s, lock_kind k, if_contended p = if_contended::wait)
        : spec(std::move(s)), kind(k), when_contended(p) {}
    lock_spec_ptr spec;
    lock_kind kind;
    if_contended when_contended;
    std::shared_ptr<observation> observed;
    /// Only the place in the queue is wanted, not a lease: the place is given back when its node is deleted or when the
    /// claim is given up, and not when the connection or the lease is lost.
    bool keeps_place = false;
    /// The wait and the hold are not reported: the user of the place reports its own.
    bool reported_by_user = false;
    /// Told once the acquire is decided.
    std::weak_ptr<place_user> user;
};

}  // namespace zkasio::lock_detail
