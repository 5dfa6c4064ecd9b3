#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/one_shot_event.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace zkasio {

/// In a catch block around a wait that knows neither who waits nor for what: throws the same error with these. For
/// writers of recipes.
[[noreturn]] ZKASIO_EXPORT void rethrow_as(std::string_view operation, std::string_view path);

/// In a catch block of an operation on `path` that consists of several: throws the same error, with its hint and its
/// outcome_unknown(), under the name of this operation. An error that speaks of another path passes as it is. For
/// writers of recipes.
[[noreturn]] ZKASIO_EXPORT void rethrow_step_as(std::string_view operation, std::string_view path);

/// one_shot_event::wait(), whose errors, and with them those of a timeout(), speak of this operation. For writers of
/// recipes; where a coroutine's frame counts, rethrow_as() around wait() does the same without another one.
ZKASIO_EXPORT asio::awaitable<void> wait_as(one_shot_event event, std::string operation, std::string path);

/// Lets everything run that is queued on the caller's executor. An operation that completes at once if a state is
/// already as wished ends with this: a loop around such an operation would otherwise keep its thread, the client on
/// that thread would send no heartbeat, and the state could never change. For writers of recipes.
ZKASIO_EXPORT asio::awaitable<void> yield_turn();

}  // namespace zkasio
