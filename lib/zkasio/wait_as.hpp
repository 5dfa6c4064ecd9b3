#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/one_shot_event.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace zkasio {

/// one_shot_event::wait(), which knows neither who waits nor for what: its errors, and with them those of a timeout(),
/// speak of this operation. For writers of recipes.
ZKASIO_EXPORT asio::awaitable<void> wait_as(one_shot_event event, std::string operation, std::string path);

}  // namespace zkasio
