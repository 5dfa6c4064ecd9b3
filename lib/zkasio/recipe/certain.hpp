#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/back_off.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

namespace detail {
ZKASIO_EXPORT asio::awaitable<void> run_until_certain(std::function<asio::awaitable<void>()> operation,
                                                      back_off pauses);
}

/// Runs `operation()`, a coroutine that may be run more than once, until its outcome is certain: again after a pause
/// whenever it fails with condition::retryable, errc::not_connected included. For writers of recipes.
/// *Completes when* the operation does, with its result.
/// *Fails with* every other error of the operation, and with one with error::hung_up(); an operation that is pinned to
/// a session fails at the latest when the session is over. error::outcome_unknown() is that of the last attempt: an
/// earlier one may have been applied.
/// *Cancellation*: ends the attempt, or the pause.
/// *Lifetime* of the operation: see kept_body.hpp.
template <class Operation>
asio::awaitable<detail::body_value<Operation>> retry_until_certain(back_off pauses, Operation&& operation) {
    return detail::run_kept(std::forward<Operation>(operation), &detail::run_until_certain, std::move(pauses));
}

/// Creates the node unless there is one, whichever client has created it. The request is repeated until its outcome is
/// certain. Where the servers have no containers, a persistent node takes the place of one. For writers of recipes.
/// *Completes when* the node has been created, by this call or before.
/// *Fails with* the errors of operations::create_unless_exists() that are not condition::retryable, and with one with
/// error::hung_up() when no attempt has created the node.
/// error::outcome_unknown() tells whether one of the attempts may have created the node.
/// *Cancellation*: see error::outcome_unknown().
/// @param on patient, see session::patient().
/// @param must_exist the path of another node, without which none is created: then it fails with zk_errc::no_node.
ZKASIO_EXPORT asio::awaitable<void> ensure_created(session on, std::string path, bytes data = bytes(),
                                                   create_options how = create_options(),
                                                   std::string must_exist = std::string());

/// `std::optional<node_data> found = co_await if_exists(zk.get("/a"))`: a read of a node that need not exist. For
/// writers of recipes.
/// *Completes when* the read does, with its result; with nothing if there is no node.
/// *Fails with* the other errors of the read.
/// *Cancellation*: as the read.
template <class Result>
asio::awaitable<std::optional<Result>> if_exists(asio::awaitable<Result> read) {
    if (!read.valid()) throw error(errc::invalid_argument, "if_exists", {}, "the operation is empty");
    std::optional<Result> found;
    try {
        Result result = co_await std::move(read);
        found.emplace(std::move(result));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return std::move(found);
}

/// The stat of the node, as of all writes that were finished before the call; nothing if there is none, or no parent.
/// For writers of recipes.
/// @param on patient, if the look is to outlast lost connections.
/// *Completes when* the answer is certain. *Fails with* errors that are not condition::retryable.
/// *Cancellation*: fails.
ZKASIO_EXPORT asio::awaitable<std::optional<node_stat>> newest_stat(session on, std::string path);

/// The names of the children, unsorted; none if there is no node. For writers of recipes.
/// *Fails with* the other errors of operations::children().
ZKASIO_EXPORT asio::awaitable<std::vector<std::string>> children_if_any(operations on, std::string path);

/// *Completes with* whether sequential nodes with this marker in their names stand below `path`: the contenders of a
/// lock, who make writers wait (promote_to()). Other children do not count, unless there are very many. No if there is
/// no node, or if an answer is an error.
/// *Cancellation*: fails.
/// @param earlier the answer of toolbox::start_exists() for `path`. If it says that there are children, they may have
/// been those of this client's last turn, about to be removed: then the servers are asked again.
ZKASIO_EXPORT asio::awaitable<bool> has_contenders(operations on, std::string path, std::string marker,
                                                   pending_data earlier);

}  // namespace zkasio
