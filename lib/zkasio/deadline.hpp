#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutine_safety.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <utility>

namespace zkasio {

namespace detail {
ZKASIO_EXPORT asio::awaitable<bool> run_until_deadline(
    boot_clock::time_point deadline, std::function<asio::awaitable<void>()> body);
}

/// Runs `body()`, a coroutine, and cancels it (terminally) at `deadline`. Completes when the body has ended: with true when it ended
/// by itself, with false when the deadline ended it. What the body throws otherwise is passed on. The body runs on a
/// strand over the caller's executor; the caller's own cancellation, of whichever type it has enabled, reaches it too. Time for which the
/// machine is suspended does not count while the body runs: the body is cancelled that much later.
template <class Body>
asio::awaitable<bool> run_with_deadline(boot_clock::time_point deadline, Body&& body) {
    return detail::run_until_deadline(deadline, detail::safe_function<std::function<asio::awaitable<void>()>>(std::forward<Body>(body)));
}

}  // namespace zkasio
