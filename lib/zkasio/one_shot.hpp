#pragma once

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>

namespace zkasio {

namespace detail {
class core;
struct waitable;
}  // namespace detail

/// Something that happens once, and that any number of coroutines may wait for, on any executors. A handle: copies speak of
/// the same. For writers of recipes, see operations::make_one_shot().
class one_shot {
public:
    explicit one_shot(std::shared_ptr<detail::core> core);

    /// From any thread. What was written before is visible to those who were waiting.
    void fire() const noexcept;

    /// *Completes when* it has been fired; at once if it already has. *Fails with* errc::client_closed when the client is
    /// closed first. *Cancellation*: ends the wait only.
    asio::awaitable<void> wait() const;

    /// Runs `body`; when this is fired meanwhile, the body receives a terminal cancellation. *Completes when* the body has
    /// really ended: with true when it ended by itself. The body runs on a strand over the caller's executor; the caller's own
    /// cancellation reaches it too, and what it throws otherwise is passed on.
    asio::awaitable<bool> run_until(std::function<asio::awaitable<void>()> body) const;

private:
    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::waitable> state_;
};

}  // namespace zkasio
