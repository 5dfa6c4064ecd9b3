#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/queues/delivery.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

namespace queue_detail {
struct queue_state;
ZKASIO_EXPORT asio::awaitable<void> run_consumers(std::function<asio::awaitable<void>(delivery&)> body,
                                                  std::shared_ptr<queue_state> from, consume_options how);
}  // namespace queue_detail

/// Jobs that wait until some process does them. An item is put once, and delivery::done() removes it once, also if
/// answers are lost, processes are killed and sessions end. The work on an item may begin more than once: see receive()
/// and take(). With the nodes of kazoo's LockingQueue, or of another queue of kazoo or Curator, and may be shared with
/// it: queue_layout says what holds then.
///
/// For hundreds to some thousands of waiting items. ZooKeeper is no place for data that pass through: all servers keep
/// all items in memory, and write each one to their logs. Above 20 000 items a warning is logged, since most clients
/// cannot list so many.
///
/// Consumers get the items by priority, and items of the same priority in the order in which they were put. A process
/// serves its waiting consumers in the order of their calls. Of several processes that contend, one may overtake
/// another by a batch, and one that comes too late claims items further down the list. A process may hand out up to a
/// sixteenth of the items that it has listed, for up to a second, before it notices an item of a higher priority.
/// Of processes that wait at an empty queue, each gets its share of items that come one by one. An item costs about two
/// listings of each of them; to keep it so, one that was just a little too late for earlier items looks up to 0.3 s
/// after a new one has come. A far process gets fewer items than near ones that wait, too, and holds up those that it
/// has claimed, and no others.
///
/// An item that this client may not read or write (or move, where it is to be moved) is left out, with a warning, and
/// tried again every minute: other items are not held up. If the client may not write the claims, receive() fails.
///
/// *Nodes* of the default layout: `<path>/entries/entry-<priority>-<number>` for an item, and the ephemeral
/// `<path>/taken/<the same name>` while the item is claimed. The version of an item's node counts its claims. Of this
/// library alone: `<path>/later/<time>-<priority>-<number>`, `<path>/dead/<the item's name>.<its czxid>` with a child
/// `reason`, and `<path>/receipts`, see receipts.hpp. The directories are created when they are missing, and stay: if
/// they are deleted, numbers begin again at 0.
///
/// May be used from any executor. Copies name the same queue. The awaitables of the members may be awaited when the
/// queue object is gone. A moved-from queue fails with errc::invalid_argument.
class ZKASIO_EXPORT work_queue {
public:
    /// Throws errc::invalid_path, also for "/" in a layout whose items are children of the path, and
    /// errc::invalid_argument if the lock path is the path, or a child of it.
    work_queue(client zk, std::string path, work_queue_options options = work_queue_options());

    /// Puts an item into the queue, once. With a delay, consumers of this library hand the item out when the delay has
    /// passed, which costs a request more. Waits while the queue is full (work_queue_options::most_items()): the puts
    /// of a session wait in the order of their calls, behind one request for the number of items, which is repeated at
    /// the intervals of client_options::retry() (at last every two seconds). Of several sessions, whichever asks first
    /// after room has come puts its items, without a bound for the others.
    /// *Completes when* the item is there. An outage that the session survives ends nothing; an item whose request was
    /// not sent when the session ends is put in the next session.
    /// *Fails with* errc::invalid_argument for a priority or an id that the layout cannot express. errc::too_large: an
    /// item is a little smaller than a request. errc::not_connected as receive(). errc::session_expired and others with
    /// error::outcome_unknown() if the session ends while the request is under way. And as operations::create().
    /// *Cancellation*: see error::outcome_unknown().
    asio::awaitable<void> put(bytes item, put_options how = put_options()) const;

    /// Puts items in this order, in one transaction, or in several if they are too large for one. While the queue is
    /// full, waits until all items of the next transaction have room, or the queue is empty.
    /// *Fails with*, and *Cancellation*: as put(). If an earlier transaction was applied, the error says so, and
    /// error::outcome_unknown() is true.
    asio::awaitable<void> put_all(std::vector<std::string> items, put_options how = put_options()) const;

    /// Adds the put of an item to a transaction of the caller's: the item is put if the transaction is applied. The
    /// queue's directories must exist, see create(). work_queue_options::most_items() is not regarded. Throws
    /// errc::too_large, and errc::invalid_argument as put(), for a delay, and in queue_layout::curator_delay().
    void put_with(transaction& steps, bytes item, put_options how = put_options()) const;

    /// Creates the queue's directories, with their parents, unless they exist. Only needed before put_with().
    /// *Fails with* the errors of operations::create_unless_exists().
    asio::awaitable<void> create() const;

    /// Takes an item out of the queue: at most once. If the process ends before take() completes, the item may be lost.
    /// *Completes when* there was an item, with its data.
    /// *Fails with* as receive(). If error::outcome_unknown(), an item may be lost.
    /// *Cancellation*: ends the wait. If the request that removes an item is under way (error::outcome_unknown() is
    /// true then), this item goes to another take() or try_take() at the queue that waits, or to the next one, of any
    /// work_queue of the same client. The item is lost only if the client or its session ends before the answer comes.
    asio::awaitable<std::string> take() const;

    /// As take(), but does not wait for an item.
    /// *Completes with* nothing if no item is free for this client, as far as its server knows, or if a receive() would
    /// wait for room.
    /// *Fails with*, and *Cancellation*: as take().
    asio::awaitable<std::optional<std::string>> try_take() const;

    /// Claims an item, which is given to some consumer at least once: to another consumer if this claim ends without
    /// delivery::done().
    /// *Completes when* there is an item. Once the wait has begun, an outage that the session survives does not end it;
    /// when the session ends, the wait goes on in the next one. A claim is an ephemeral node: beyond half of
    /// client_options::ephemeral_budget() a client claims no more items while it has a claim at this queue, but waits
    /// until room comes, also for who keeps all of these deliveries and asks for another one.
    /// *Fails with* errc::foreign_child if a node in the queue's directory is no item; errc::too_many_ephemerals, with
    /// the path of the claim or of its receipt, if no claim of this client is at the queue, there is no room for one,
    /// and no other node of this client is about to go;
    /// errc::not_connected when there is no connection for client_options::connection_timeout, at first or after the
    /// end of a session; and as operations::children().
    /// *Cancellation*: ends the wait; an item that arrives is given to the next consumer, or back.
    asio::awaitable<delivery> receive() const;

    /// Receives items and runs `body(delivery)`, a coroutine that takes a delivery&, for each of them, at most
    /// consume_options::parallel() at a time. When a body returns, its item is done(), unless the body has ended the
    /// delivery itself. When it throws, the item is given back after a pause, or, at its last delivery
    /// (work_queue_options::most_deliveries()), moved to the dead items with the text of the exception. If the claim is
    /// lost, the body receives a terminal cancellation, and its item is given to some consumer again.
    /// consume_options::pause() says how a process whose bodies fail leaves items to others. An item that cannot be
    /// moved to the dead items is given back after a pause instead, see work_queue.
    /// Does not complete: outages, and sessions that end, do not end it.
    /// *Fails with* errc::client_closed and errc::forked; and as receive() and delivery::done() with all errors that
    /// are neither condition::retryable nor errc::lock_lost, errc::lock_released or errc::session_expired. These, and a
    /// cancellation, have error::outcome_unknown() if the body that ran last has left the outcome of a write unknown.
    /// *Cancellation*: the bodies receive the cancellation, and the items that are not done are given back. If a body
    /// answers the cancellation with another exception, its item is given back at once, and consume() fails with that
    /// exception.
    /// *Lifetime* of the body: see kept_body.hpp. The bodies run on one strand, see task_scope.
    template <class Body>
    asio::awaitable<void> consume(Body&& body, consume_options how = consume_options()) const {
        static_assert(std::is_void_v<detail::body_value<Body, delivery&>>,
                      "the body of consume() takes a delivery&, and returns asio::awaitable<void>");
        return detail::run_kept(std::forward<Body>(body), &queue_detail::run_consumers, state_, how);
    }

    /// How many items there are, and for how long they have waited, as the server of this client knows. Costs four
    /// requests, in one round trip; while items wait, four more, of which two list the items and the claims, and one
    /// writes, since only a write tells the servers' time. (The first one of a session creates its receipt: two more.)
    /// *Fails with* the errors of operations::exists() and children(), and as put() if the write fails with anything
    /// but zk_errc::no_auth.
    asio::awaitable<work_queue_info> info() const;

    /// The dead items: rejected, or delivered too often. Costs two requests for each, 64 items in a round trip. An item
    /// that this client may not read has no data and no time, and the error as its reason.
    /// *Fails with* the other errors of operations::get().
    asio::awaitable<std::vector<dead_item>> dead() const;
    /// Puts a dead item into the queue again, as a new item with the same priority; once. To remove it for good, use
    /// operations::remove_recursive() with `<path>/dead/<name>`.
    /// *Completes with* false if there is no dead item of this name.
    /// *Fails with* errc::invalid_argument for a name that no dead item can have, and as put().
    /// *Cancellation*: as put().
    asio::awaitable<bool> revive(std::string name) const;

    const std::string& path() const;

private:
    std::shared_ptr<queue_detail::queue_state> state_;
};

}  // namespace zkasio
