#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
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

/// How an item is put into a work_queue: `put_options().priority(10)`.
class ZKASIO_EXPORT put_options {
public:
    put_options() {}
    /// Items of a lower number are handed out first (100). A put fails with errc::invalid_argument if the layout cannot
    /// express the number: kazoo's have 0 to 999, curator_priority() any `int`, and the others no priorities at all.
    put_options& priority(int n) {
        priority_ = n;
        return *this;
    }
    /// The item is handed out this much later at the earliest, by the servers' clocks (0). Throws
    /// errc::invalid_argument for a negative duration, and for more than 100 years.
    put_options& delay(any_duration d);

    /// The id of an item of queue_layout::curator_id(): required there, and refused by other layouts, with
    /// errc::invalid_argument. From 1 to 512 bytes. As in Curator's nodes, '/' and '|' become '_'.
    put_options& id(std::string text) {
        id_ = std::move(text);
        return *this;
    }

    /// Nothing: none was given.
    std::optional<int> priority() const noexcept { return priority_; }
    std::chrono::milliseconds delay() const noexcept { return delay_; }
    const std::optional<std::string>& id() const noexcept { return id_; }

private:
    std::optional<int> priority_;
    std::chrono::milliseconds delay_{0};
    std::optional<std::string> id_;
};

/// The options of a work_queue. All processes that use a queue give the same ones.
class ZKASIO_EXPORT work_queue_options {
public:
    work_queue_options() {}
    /// The nodes of the queue (queue_layout::kazoo_locking()).
    work_queue_options& layout(queue_layout nodes) {
        layout_ = std::move(nodes);
        return *this;
    }
    /// The ACL of all nodes of the queue (client_options::default_acl()).
    work_queue_options& acl(zkasio::acl entries) {
        acl_ = std::move(entries);
        return *this;
    }

    /// A put waits while this many items are in the queue, claimed ones included, but not those whose delay has not
    /// passed (0: never); in queue_layout::curator_delay(), those as well. Exceeded by at most the puts that are under
    /// way at the same time.
    work_queue_options& most_items(std::size_t n) {
        most_items_ = n;
        return *this;
    }
    /// An item that was claimed this often without being done is not handed out again, but moved to the dead items (0:
    /// never), see work_queue::dead(). Throws errc::invalid_argument for a negative number.
    work_queue_options& most_deliveries(int n);

    const queue_layout& layout() const noexcept { return layout_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    std::size_t most_items() const noexcept { return most_items_; }
    int most_deliveries() const noexcept { return most_deliveries_; }

private:
    queue_layout layout_ = queue_layout::kazoo_locking();
    zkasio::acl acl_ = default_acl();
    std::size_t most_items_ = 0;
    int most_deliveries_ = 0;
};

/// How work_queue::consume() runs its body.
class ZKASIO_EXPORT consume_options {
public:
    consume_options() {}
    /// How many items are worked on at the same time (1). Throws errc::invalid_argument for 0.
    consume_options& parallel(std::size_t n);
    /// After a failure the item rests for `first` (a second), after each further failure for twice as long, and for
    /// `longest` (a minute) at most. 32 items of a process may rest at the same time, see delivery::again(): of further
    /// items another process gets the next delivery at once. consume() then waits for `first` after the first failure
    /// of an item, so that an outage of what the bodies need spends few deliveries. Throws errc::invalid_argument for
    /// negative durations.
    consume_options& pause(any_duration first, any_duration longest = std::chrono::minutes(1));

    std::size_t parallel() const noexcept { return parallel_; }
    /// The pause after this delivery has failed. @param attempt from 1 on.
    std::chrono::milliseconds pause_after(int attempt) const noexcept;

private:
    std::size_t parallel_ = 1;
    std::chrono::milliseconds first_pause_{1000}, longest_pause_{60'000};
};

/// How many items a queue has.
struct work_queue_info {
    std::size_t waiting = 0;  ///< not claimed; in queue_layout::curator_delay(), whatever their time
    std::size_t claimed = 0;
    std::size_t later = 0;  ///< put with a delay that has not passed, or that no consumer has noticed yet
    std::size_t dead = 0;
    /// How long the oldest item that waits has waited since its put, or since the end of its delay; by the servers'
    /// clocks. Nothing: none waits, or the client may not write into the queue's receipts.
    std::optional<std::chrono::milliseconds> oldest;
};

/// An item that was rejected, or delivered too often: consumers are not given it.
struct dead_item {
    std::string name;                             ///< for work_queue::revive()
    std::string item;                             ///< its data; whole, if the layout's frame is broken
    std::string reason;                           ///< see delivery::reject()
    std::chrono::system_clock::time_point since;  ///< by the servers' clocks
};

}  // namespace zkasio
