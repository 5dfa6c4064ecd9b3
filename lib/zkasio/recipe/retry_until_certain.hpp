#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/back_off.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <functional>
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

}  // namespace zkasio
