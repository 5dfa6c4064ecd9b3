#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/back_off.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <string>
#include <utility>

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
/// certain. For writers of recipes.
/// *Completes when* the node has been created, by this call or before.
/// *Fails with* the errors of operations::create_unless_exists() that are not condition::retryable, and with one with
/// error::hung_up() when no attempt has created the node.
/// error::outcome_unknown() tells whether one of the attempts may have created the node.
/// *Cancellation*: see error::outcome_unknown().
/// @param on patient, see session::patient().
ZKASIO_EXPORT asio::awaitable<void> ensure_created(session on, std::string path, bytes data = bytes(),
                                                   create_options how = create_options());

}  // namespace zkasio
