#pragma once

#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/loss_report.hpp>
#include <zkasio/locks/detail/observation.hpp>
#include <zkasio/locks/if_contended.hpp>

#include <memory>
#include <utility>

namespace zkasio::lock_detail {

/// What a contender asks for.
struct acquire_request {
    acquire_request(lock_spec_ptr s, lock_kind k, if_contended p = if_contended::wait)
        : spec(std::move(s)), kind(k), when_contended(p) {}
    lock_spec_ptr spec;
    lock_kind kind;
    if_contended when_contended;
    /// A reader that does not wait for writers who only wait themselves, see shared_mutex_options::prefer_readers().
    bool join_readers = false;
    std::shared_ptr<observation> observed;
    /// Set for one of several locks that are worth something only together. It is told of every loss, and a waiter
    /// whose node an operator deletes is refused (acquire_outcome::displaced) instead of queueing again.
    std::shared_ptr<loss_report> lost;
    /// Only the place in the queue is wanted, not a lease: it is given back when its node is deleted or when it is
    /// given up, and not when the connection or the lease is lost.
    bool keeps_place = false;
};

}  // namespace zkasio::lock_detail
