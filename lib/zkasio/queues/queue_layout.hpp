#pragma once

#include <zkasio/export.hpp>

#include <string>
#include <utility>

namespace zkasio {

/// The queues of other libraries that a work_queue can be.
enum class queue_kind {
    kazoo_locking,
    kazoo,
    curator,
    curator_priority,
    curator_delay,
    curator_id,
    curator_simple,
};

/// Which nodes a work_queue has: those of a queue of kazoo or of Apache Curator, with which it may be shared. Below,
/// `S` is the sequence number.
///
/// But for kazoo_locking(), the items are children of the queue's path, where the other libraries would take any other
/// node for an item. The nodes of this library alone are next to the path: `<path>-later`, `<path>-dead`,
/// `<path>-receipts`, and, without a lock path, `<path>-taken`.
///
/// *Without claims.* A consumer of kazoo's Queue, of Curator's SimpleDistributedQueue, or of another queue of Curator
/// without a lock path takes an item by removing it, also while a work_queue's claim stands. So, shared with such
/// consumers:
///
/// * work_queue::take() and try_take() give an item to one consumer of all libraries.
/// * After work_queue::receive(), and in consume(), an item may be taken while this consumer works on it.
///   delivery::held() stays true; delivery::done() and reject() then fail with errc::lock_lost, and change nothing. So
///   an item may be worked on twice, but only one consumer removes it, and the effect of done() is applied only if that
///   is this one.
/// * A consumer of the other library loses an item, and is not told, if the answer to its removal is lost.
///
/// *With claims* (kazoo's LockingQueue, and Curator's queues with a lock path), no consumer gets an item that another
/// one has claimed. A claim of this library is written once after its creation: by its version, this library tells its
/// own claims from those of other libraries, and never removes these.
///
/// *Large items* of other clients, which are larger than work_queue::put() accepts, cannot be written again. They are
/// handed out, but their claims are not counted: delivery::attempt() is 1, and work_queue_options::most_deliveries() is
/// not regarded. delivery::reject() fails with errc::too_large, and consume() gives the item back instead. A large item
/// that would be replaced, as it has several values or a broken frame, stays in the queue; a warning is logged, and
/// consumers get the items behind it. If an operator removes the claim of a large item, and another consumer of this
/// library claims the item before the first one has noticed, delivery::done() of the first one removes the item and the
/// other's claim.
///
/// Consumers of Curator look at an item that was given back only when other items come or go, and those of this library
/// at once.
class ZKASIO_EXPORT queue_layout {
public:
    /// kazoo's LockingQueue, the default: `<path>/entries/entry-<priority, %03d>-S`, claims in `<path>/taken`.
    static queue_layout kazoo_locking() { return queue_layout(queue_kind::kazoo_locking, std::string()); }
    /// kazoo's Queue: `<path>/entry-<priority, %03d>-S`.
    static queue_layout kazoo() { return queue_layout(queue_kind::kazoo, std::string()); }

    /// Curator's DistributedQueue: `<path>/queue-S`. An item has no priority.
    ///
    /// Items of this queue and of the next three are framed as Curator frames them. An item that holds several values
    /// (putMulti() of Curator) is replaced by one item for each of them, together and in their order, behind the items
    /// of the same priority. An item that is not so framed is moved to the dead items: Curator's own consumers drop it.
    /// @param lock_path the directory of claims, as QueueBuilder.lockPath(); no node of the queue, and of no other
    /// queue. Empty: consumers of Curator have no lock path. Throws errc::invalid_path.
    static queue_layout curator(std::string lock_path = std::string());
    /// Curator's DistributedPriorityQueue: `<path>/queue-<0|1><priority, %08X>S`. Any `int` is a priority. Curator puts
    /// an item whose consumer has failed again (ErrorMode.REQUEUE) as `<path>/queue-S`, in front of all priorities.
    /// @param lock_path as curator().
    static queue_layout curator_priority(std::string lock_path = std::string());
    /// Curator's DistributedDelayQueue: `<path>/queue-|<milliseconds since 1970, %08X>|S`. An item has no priority: the
    /// items are handed out in the order of their times. Consumers of this library go by the servers' clocks, those of
    /// Curator by their own. An item whose consumer has failed is put again by Curator (ErrorMode.REQUEUE) as
    /// `<path>/queue-S`, and is due at once. @param lock_path as curator().
    static queue_layout curator_delay(std::string lock_path = std::string());
    /// Curator's DistributedIdQueue: `<path>/queue-|<id>|S`. Each item has an id, put_options::id(), and no priority.
    /// @param lock_path as curator().
    static queue_layout curator_id(std::string lock_path = std::string());

    /// Curator's SimpleDistributedQueue, and the one of ZooKeeper's recipes: `<path>/qn-S`. An item has no priority.
    /// Curator makes the directory a container, which servers remove when it is empty, so that numbers begin again at
    /// 0: let work_queue::create() make it first.
    static queue_layout curator_simple() { return queue_layout(queue_kind::curator_simple, std::string()); }

    queue_kind kind() const noexcept { return kind_; }
    const std::string& lock_path() const noexcept { return lock_path_; }

private:
    queue_layout(queue_kind k, std::string lock_path) : kind_(k), lock_path_(std::move(lock_path)) {}

    queue_kind kind_;
    std::string lock_path_;
};

}  // namespace zkasio
