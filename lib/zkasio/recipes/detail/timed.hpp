#pragma once

#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/recipes/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace zkasio::recipes::detail {

/// What the try_acquire_until() members of the locks do: `acquire`, cancelled at `limit`.
asio::awaitable<std::optional<lock_guard>> acquire_until(client zk, std::string path, boot_clock::time_point limit,
                                                         std::function<asio::awaitable<lock_guard>()> acquire);

/// The end of a duration that begins now. Throws errc::invalid_argument when it is negative.
boot_clock::time_point limit_after(std::chrono::nanoseconds duration, const std::string& path);

}  // namespace zkasio::recipes::detail
