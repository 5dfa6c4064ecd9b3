#pragma once

#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/loss_report.hpp>
#include <zkasio/locks/detail/queue/observation.hpp>
#include <zkasio/locks/if_contended.hpp>

#include <memory>
#include <utility>

namespace zkasio::lock_detail {

/// The request of a contender: the lock, and how to acquire it.
struct acquire_request {
    acquire_request(lock_spec_ptr s, lock_kind k, if_contended p = if_contended::wait)
        : spec(std::move(s)), kind(k), when_contended(p) {}
    lock_spec_ptr spec;
    lock_kind kind;
    if_contended when_contended;
    /// The contender is a reader that does not wait for waiting writers, see shared_mutex_options::prefer_readers().
    bool join_readers = false;
    std::shared_ptr<observation> observed;
    /// Set if the lock is one of several that are only useful together. Every loss is reported here. If an operator
    /// deletes a waiter's node, the waiter is refused (acquire_outcome::displaced) instead of queueing again.
    std::shared_ptr<loss_report> lost;
    /// Only the place in the queue is wanted, not a lease: the place is given back when its node is deleted or when the
    /// claim is given up, and not when the connection or the lease is lost.
    bool keeps_place = false;
};

}  // namespace zkasio::lock_detail
