#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

namespace transact_detail {
struct unit_state;
}  // namespace transact_detail

/// One run of the body of a transact(): what the body reads and writes. The writes are recorded, and sent all together
/// when the body has returned.
///
/// To be used on the executor of the body, also by coroutines that the body runs concurrently on that executor. Copies
/// name the same run. When the body has ended, and for a unit that was moved from, the members fail with
/// errc::invalid_argument.
class ZKASIO_EXPORT unit {
public:
    /// *Completes with* the node, or nothing if there is none: as this run has written it; else as this run has read it
    /// before; else as the server of this client knows it. The node is then a condition of the transaction: if another
    /// client writes, creates or removes the node before the end, nothing is written, and the body runs again. Of a
    /// node that this run has written, the stat is that from before; of one that this run has created, it is empty.
    /// *Fails with* the errors of operations::get() but zk_errc::no_node. An outage that the session survives ends
    /// nothing. If the session ends, the body should end with the error. The next session runs it again.
    /// *Cancellation*: ends the wait only.
    asio::awaitable<std::optional<node_data>> get(std::string path) const;

    /// As get() of each path, in the order of the paths. All requests are sent at once: one round trip.
    asio::awaitable<std::vector<std::optional<node_data>>> get_all(std::vector<std::string> paths) const;

    /// The writes of this transaction. A set() or remove() of a node that this run has not read has no condition. A
    /// write that contradicts what this run sees, such as a set() where there is no node, ends the transaction when the
    /// body has returned: with zk_errc::no_node or zk_errc::node_exists if what was read still holds, and else with
    /// another run. Throw errc::invalid_path.
    void set(std::string path, bytes data) const;
    /// @param how without parents, protection, containers and times to live, which a transaction cannot create. A
    /// sequential node has no name before the end: get() does not see it.
    void create(std::string path, bytes data = bytes(), create_options how = create_options()) const;
    /// Without the nodes below it: zk_errc::not_empty.
    void remove(std::string path) const;

    /// Made by transact().
    explicit unit(std::shared_ptr<transact_detail::unit_state> state) noexcept : state_(std::move(state)) {}

private:
    std::shared_ptr<transact_detail::unit_state> state_;
};

/// How transact() behaves.
class ZKASIO_EXPORT transact_options {
public:
    transact_options() {}
    /// Finds out the outcome of a transaction whose answer is lost, by receipts in this directory, see receipts.hpp
    /// (none). The directory is created when it is missing, and needs the permission to create nodes. All programs may
    /// share one. Throws errc::invalid_path.
    transact_options& receipts(std::string directory);
    /// Applies the transaction if, and only if, this lock is still held then, as lock_guard::commit() does; for a
    /// leadership, give its guard(). transact() runs in the guard's session. The guard has to stay until transact()
    /// completes: the options keep nothing of it, and transact() fails with errc::lock_released if the guard was
    /// destroyed before. Throws errc::lock_released for a guard that was released or is empty.
    transact_options& under(const lock_guard& guard);
    /// How many runs of the body may meet a conflict (no limit; with promote_to(), 3). After these, transact() fails
    /// with the code of the last conflict, or takes the mutex of promote_to(). Throws errc::invalid_argument for less
    /// than one.
    transact_options& tries(int n);
    /// After tries(), transact() takes the mutex at this path (none), and goes on until it succeeds, without pauses.
    /// While the mutex has contenders, all transact() with this path that write wait in its queue before they write: so
    /// one in the queue is overtaken by each other one once at most, by a run that was under way, and also a long body
    /// or a far client has its turn. A writer without this path is not bound. The mutex is for these turns alone:
    /// whoever holds it, also a body that hangs, holds up all writers; a writer that is cut off in its turn, until its
    /// session ends. Neither the body nor its caller may hold it: if it is the lock of under(), transact() fails with
    /// errc::would_deadlock. Costs a read for each run, sent together with the first one of the body, and a lock only
    /// under such a load. Throws errc::invalid_path.
    transact_options& promote_to(std::string lock_path);

    const std::string& receipts() const noexcept { return receipts_; }
    const std::optional<std::weak_ptr<lock_claim>>& under() const noexcept { return claim_; }
    std::optional<int> tries() const noexcept { return tries_; }
    const std::string& promote_to() const noexcept { return promote_to_; }

private:
    std::string receipts_, promote_to_;
    std::optional<std::weak_ptr<lock_claim>> claim_;  // weak: options may outlive the client's execution context
    std::optional<int> tries_;
};

namespace transact_detail {
ZKASIO_EXPORT asio::awaitable<void> run_transact(std::function<asio::awaitable<void>(unit&)> body, client zk,
                                                 transact_options how);
}

/// Reads and writes several nodes as if no other client did anything in between: runs `body(unit)`, a coroutine, and
/// then applies all that the body has written, in one transaction, if nothing that the body has read has changed. If
/// something has changed, which is a conflict, the body runs again, after a pause and a sync(). Of several transact()
/// and modify() of one client that meet conflicts at a node, one at a time goes on, which keeps the others waiting for
/// at most five seconds.
///
/// Without transact_options::promote_to() not fair: beside clients that write the nodes all the time, a far one, or a
/// long body, may be late each time, without a bound.
///
///     const auto transfer = [&](zkasio::unit& u) -> asio::awaitable<void> {
///         const auto from = co_await u.get("/accounts/a");
///         const auto to = co_await u.get("/accounts/b");
///         u.set("/accounts/a", less(from, 10));
///         u.set("/accounts/b", more(to, 10));
///     };
///     co_await zkasio::transact(zk, transfer, zkasio::transact_options().receipts("/accounts-receipts"));
///
/// *What a body may do.* A body may run many times: it has no effect but the writes of the unit, sends no message, and
/// writes to no other store. Within one run, the nodes may be of different moments, or from a server that lags behind;
/// such a run ends in a conflict. So only what a body returns was true of all nodes at one moment: a body returns "sold
/// out", and does not throw it.
///
/// *Completes when* the transaction was applied, with what the last run has returned. All that this run has read and
/// written is one state of the servers (serializable). This holds for a body that only reads, too. A body that neither
/// reads nor writes costs no request.
///
/// *Fails with*
///
///   - an exception of the body, at once;
///   - the code of a write that the servers refuse although all that was read still holds (which is looked up before
///     transact() fails): zk_errc::no_node, node_exists, not_empty, no_auth; errc::too_large, errc::invalid_argument;
///   - the code of the last conflict, after transact_options::tries(): zk_errc::bad_version, no_node, node_exists;
///   - errc::lock_lost, under a lock: see lock_guard::commit(). Also when the session is over; errc::lock_released, if
///     the guard was released meanwhile;
///   - the errors of client::current_session(), and with transact_options::promote_to(), those of mutex::acquire().
///
/// In all these cases nothing was written, unless error::outcome_unknown() is true.
///
/// *When the answer to the transaction is lost*:
///
///   - With transact_options::receipts(), the transaction is applied exactly once: the receipt tells whether it was
///     applied. An outage that the session survives ends nothing. If the session ends before that is known, transact()
///     fails with errc::session_expired and error::outcome_unknown(); if an operator removes the receipt before that,
///     with zk_errc::connection_loss and error::outcome_unknown().
///   - Without receipts, transact() fails with the error of the transaction (zk_errc::connection_loss,
///     errc::session_expired), and error::outcome_unknown() is true.
///   - A body that only reads is never uncertain: its transaction is repeated.
///
/// *On session loss*: if the transaction was not sent, the body runs again, in the next session.
///
/// *Cancellation* is passed on to the body. If the transaction was sent, see error::outcome_unknown(); else nothing is
/// written.
///
/// *Limits*:
///
///   - The children of a node cannot be read: no step of a transaction checks a list of children.
///   - A node that was read as missing, and is not created, is created and removed again by the transaction. This needs
///     the permission to create and delete there, wakes watches of the parent's children, uses up one of the parent's
///     sequence numbers, lets the servers remove an empty container, and fails below an ephemeral node.
///   - A version does not tell a re-created node from the node before: if a node is deleted, re-created and written as
///     often as before between its read and the transaction, this is no conflict.
///   - After 2^31 - 1 writes the version of a node is negative, which no condition can name: unit::get() then fails
///     with std::errc::result_out_of_range.
///   - The transaction is at most max_request_bytes long, with all its data.
///
/// *Lifetime* of the body: see kept_body.hpp. The body runs on the executor of the caller.
template <class Body>
asio::awaitable<detail::body_value<Body, unit&>> transact(client zk, Body&& body,
                                                          transact_options how = transact_options()) {
    return detail::run_kept(std::forward<Body>(body), &transact_detail::run_transact, std::move(zk), std::move(how));
}

}  // namespace zkasio
