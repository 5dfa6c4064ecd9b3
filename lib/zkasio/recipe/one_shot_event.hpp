#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

namespace detail {
class core;
struct access;
struct one_shot_state;
}  // namespace detail

/// An event that happens once, and that any number of coroutines may wait for, on any executors. A handle: copies name
/// the same event. The coroutines of the members may be awaited when the handle is gone. On a moved-from handle, fire()
/// does nothing, and the other members fail with errc::invalid_argument. For writers of recipes, see
/// toolbox::make_one_shot_event().
class ZKASIO_EXPORT one_shot_event {
public:
    /// From any thread. Writes before the call are visible to the coroutines that were waiting.
    void fire() const noexcept;

    /// *Completes when* the event has been fired; at once if it already has.
    /// *Fails with* errc::client_closed when the client is closed first, errc::forked in a child process.
    /// *Cancellation*: ends the wait only.
    asio::awaitable<void> wait() const;

    /// Runs `body()`, a coroutine. If the event is fired while the body runs, the body receives a terminal
    /// cancellation. The body runs on the caller's executor if that is an asio::strand<asio::any_io_executor>, else on
    /// a strand over it. The caller's own cancellation, of any type that it has enabled, reaches the body, too; other
    /// exceptions of the body are passed on. *Completes when* the body has really ended: with true when it was not
    /// ended by the event; for a body that returns a value: with it in a std::optional, empty when the event has ended
    /// the body. The body's cancellation is dropped then, also with error::outcome_unknown(): a body may note it.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::unless_stopped<detail::body_value<Body>>> run_until(Body&& body) const {
        return detail::run_kept(std::forward<Body>(body), &run_body, core_, state_);
    }

private:
    friend struct detail::access;
    explicit one_shot_event(std::shared_ptr<detail::core> core);
    static asio::awaitable<bool> run_body(std::function<asio::awaitable<void>()> body,
                                          std::shared_ptr<detail::core> core,
                                          std::shared_ptr<detail::one_shot_state> state);

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::one_shot_state> state_;
};

/// Waits for the event; errors, with those of a timeout(), name this operation and this path. For writers of recipes;
/// where a coroutine's frame counts, rethrow_as() around wait() does the same without another frame.
ZKASIO_EXPORT asio::awaitable<void> wait_as(one_shot_event event, std::string operation, std::string path);

/// Lets everything run that is queued on the caller's executor. An operation that completes at once if a state is
/// already as wished ends with this: a loop around such an operation would otherwise keep its thread, the client on
/// that thread would send no heartbeat, and the state could never change. For writers of recipes.
ZKASIO_EXPORT asio::awaitable<void> yield_turn();

}  // namespace zkasio
