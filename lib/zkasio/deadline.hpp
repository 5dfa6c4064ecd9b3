#pragma once

#include <zkasio/clock.hpp>

#include <asio/awaitable.hpp>

#include <functional>

namespace zkasio {

/// Runs `body`, and cancels it (terminally) at `deadline`. Completes when the body has ended: with true when it ended
/// by itself, with false when the deadline ended it. What the body throws otherwise is passed on. The body runs on a
/// strand over the caller's executor; the caller's own cancellation reaches it too.
asio::awaitable<bool> run_with_deadline(boot_clock::time_point deadline, std::function<asio::awaitable<void>()> body);

}  // namespace zkasio
