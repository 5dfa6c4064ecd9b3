#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/kept_body.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/transact/unit.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

/// How transact() behaves.
class ZKASIO_EXPORT transact_options {
public:
    transact_options() {}
    /// Finds out the outcome of a transaction whose answer is lost, by receipts in this directory, see receipts.hpp
    /// (none). The directory is created when it is missing, and needs the permission to create nodes. All programs may
    /// share one. Throws errc::invalid_path.
    transact_options& receipts(std::string directory);
    /// Applies the transaction if, and only if, this lock is still held then, as lock_guard::commit() does. The guard
    /// has to stay until transact() completes. Throws errc::lock_released for a guard that was released or is empty.
    transact_options& under(const lock_guard& guard);
    /// How many runs of the body may meet a conflict (no limit; with promote_to(), 3). After these, transact() fails
    /// with the code of the last conflict, or takes the mutex of promote_to(). Throws errc::invalid_argument for less
    /// than one.
    transact_options& tries(int n);
    /// After tries(), transact() takes the mutex at this path (none), and goes on until it succeeds: of many writers
    /// that are in each other's way, each has its turn. The body must not acquire this mutex. Throws
    /// errc::invalid_path.
    transact_options& promote_to(std::string lock_path);

    const std::string& receipts() const noexcept { return receipts_; }
    const std::shared_ptr<lock_claim>& under() const noexcept { return claim_; }
    std::optional<int> tries() const noexcept { return tries_; }
    const std::string& promote_to() const noexcept { return promote_to_; }

private:
    std::string receipts_, promote_to_;
    std::shared_ptr<lock_claim> claim_;
    std::optional<int> tries_;
};

namespace transact_detail {
ZKASIO_EXPORT asio::awaitable<void> run(std::function<asio::awaitable<void>(unit&)> body, client zk,
                                        transact_options how);
}

/// Reads and writes several nodes as if no other client did anything in between: runs `body(unit)`, a coroutine, and
/// then applies all that it has written, if nothing that it has read has changed. Otherwise the body runs again, after
/// a pause, and reads anew behind a sync(). So a body may run many times: it changes nothing but the unit, and
/// begins with none of the values of an earlier run.
///
///     const auto transfer = [&](zkasio::unit& u) -> asio::awaitable<void> {
///         const auto from = co_await u.get("/accounts/a");
///         const auto to = co_await u.get("/accounts/b");
///         u.set("/accounts/a", less(from, 10));
///         u.set("/accounts/b", more(to, 10));
///     };
///     co_await zkasio::transact(zk, transfer, zkasio::transact_options().receipts("/accounts-receipts"));
///
/// *Completes when* a transaction was applied, with what the body has returned in that run. What was read and what was
/// written is the state of the servers at one moment (serializable), also for a body that only reads. A body that
/// neither reads nor writes costs no request.
///
/// *Fails with* any exception of the body: nothing is written. The body may have read nodes of different moments, or
/// from a server that lags behind: a body that finds something impossible should know that. Only what a body *returns*
/// was true. So a body returns "sold out", and does not throw it.
///   - The code of a write that the servers refuse although what was read still holds: zk_errc::no_node,
///     zk_errc::node_exists, zk_errc::not_empty, zk_errc::no_auth; errc::too_large. Nothing was written.
///   - With transact_options::under(), errc::lock_lost, see lock_guard::commit(): also if the session is over.
///   - The code of the last conflict, after transact_options::tries(): zk_errc::bad_version, no_node, node_exists.
///   - The errors of client::current_session().
///
/// *When the answer to the transaction is lost*: with transact_options::receipts(), the receipt tells whether the
/// transaction was applied. An outage that the session survives then ends nothing, and the transaction is applied
/// exactly once. If the session ends before that is known, transact() fails with errc::session_expired, and
/// error::outcome_unknown() is true. Without receipts, transact() fails with the error of the transaction and
/// error::outcome_unknown(). In all other failures, nothing was written. A body that only reads is never uncertain.
///
/// *On session loss*: a transaction that was not sent begins again in the next session, with another run of the body.
///
/// *Cancellation* is passed on to the body. Nothing is written unless the transaction was sent: see
/// error::outcome_unknown().
///
/// *Limits.* The children of a node cannot be read: nothing in ZooKeeper checks a list of children in a transaction.
/// A node that was read as missing and is not created costs a node that is created and removed at once: this needs the
/// permission to do so, wakes watches of the parent's children, and fails below ephemeral nodes. A version does not
/// tell a re-created node from the node before: if a node that was read is deleted, re-created and written as often as
/// before, this is not noticed. The transaction with all its data is at most max_request_bytes long. After 2^31 - 1
/// writes the version of a node is negative, which no condition can name: unit::get() then fails with
/// std::errc::result_out_of_range.
///
/// *Lifetime* of the body: see kept_body.hpp. The body runs on the executor of the caller.
template <class Body>
asio::awaitable<detail::body_value<Body, unit&>> transact(client zk, Body&& body,
                                                          transact_options how = transact_options()) {
    return detail::run_kept(std::forward<Body>(body), &transact_detail::run, std::move(zk), std::move(how));
}

}  // namespace zkasio
