#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/queues/delivery.hpp>
#include <zkasio/queues/work_queue_options.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio {

namespace queue_detail {
struct queue_state;
ZKASIO_EXPORT asio::awaitable<void> run_consumers(std::function<asio::awaitable<void>(delivery&)> body,
                                                  std::shared_ptr<queue_state> from, consume_options how);
}  // namespace queue_detail

/// Jobs that wait until some process does them. An item is put once, and delivery::done() removes it once, also if
/// answers are lost, processes are killed and sessions end. The work on an item may begin more than once: see receive()
/// and take(). With the nodes of kazoo's LockingQueue, or of another queue of kazoo or Curator, and may be shared with
/// it: work_queue_options.hpp says what holds then.
///
/// For hundreds to some thousands of waiting items. ZooKeeper is no place for data that pass through: all servers keep
/// all items in memory, and write each one to their logs. Above 20 000 items a warning is logged, since most clients
/// cannot list so many.
///
/// Consumers get the items by priority, and items of the same priority in the order in which they were put. A process
/// serves its waiting consumers in the order of their calls. Of several processes that contend, one may overtake
/// another by a batch, and one whose claims are refused claims items further down the list. A process may hand out up
/// to a sixteenth of the items that it has listed, for up to a second, before it notices an item of a higher priority.
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
