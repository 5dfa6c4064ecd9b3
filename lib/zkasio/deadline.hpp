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

/// Runs `body()`, a coroutine, on a strand over the caller's executor, and cancels the body (terminally) at `deadline`.
/// Time for which the machine is suspended while the body runs does not count: the body is cancelled that much later.
/// *Completes when* the body has ended: with true if the body ended of its own accord, with false if the deadline ended
/// the body. If the body returns a value: with a std::optional of the value, which is empty in the second case.
/// *Fails with* every exception of the body, except the cancellation by the deadline.
/// *Cancellation*, of every type that the caller has enabled, reaches the body, too.
/// *Lifetime* of the body: see kept_body.hpp.
template <class Body>
asio::awaitable<detail::unless_stopped<detail::body_value<Body>>> run_with_deadline(boot_clock::time_point deadline,
                                                                                    Body&& body) {
    return detail::run_kept(std::forward<Body>(body), &detail::run_until_deadline, deadline);
}

}  // namespace zkasio
