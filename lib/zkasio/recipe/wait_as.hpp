#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/recipe/one_shot_event.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace zkasio {

/// Waits for the event; errors, with those of a timeout(), name this operation and this path. For writers of recipes;
/// where a coroutine's frame counts, rethrow_as() around wait() does the same without another frame.
ZKASIO_EXPORT asio::awaitable<void> wait_as(one_shot_event event, std::string operation, std::string path);

/// Lets everything run that is queued on the caller's executor. An operation that completes at once if a state is
/// already as wished ends with this: a loop around such an operation would otherwise keep its thread, the client on
/// that thread would send no heartbeat, and the state could never change. For writers of recipes.
ZKASIO_EXPORT asio::awaitable<void> yield_turn();

}  // namespace zkasio
