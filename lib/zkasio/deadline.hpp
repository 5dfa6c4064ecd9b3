#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/kept_body.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <utility>

namespace zkasio {

namespace detail {
ZKASIO_EXPORT asio::awaitable<bool> run_until_deadline(std::function<asio::awaitable<void>()> body,
                                                       boot_clock::time_point deadline);
}

/// Runs `body()`, a coroutine, and cancels it (terminally) at `deadline`. Completes when the body has ended: with true
/// when it ended by itself, with false when the deadline ended it. What the body throws otherwise is passed on. The
/// body runs on a strand over the caller's executor; the caller's own cancellation, of whichever type it has enabled,
/// reaches it too. Time for which the machine is suspended does not count while the body runs: the body is cancelled
/// that much later. A body that returns a value: with that value in a std::optional, which is empty when the deadline
/// ended the body. *Lifetime* of the body: see kept_body.hpp.
template <class Body>
asio::awaitable<detail::unless_stopped<detail::body_value<Body>>> run_with_deadline(boot_clock::time_point deadline,
                                                                                    Body&& body) {
    return detail::run_kept(std::forward<Body>(body), &detail::run_until_deadline, deadline);
}

}  // namespace zkasio
