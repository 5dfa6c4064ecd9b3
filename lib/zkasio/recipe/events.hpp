#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>
#include <zkasio/operations.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

/// Lets everything run that is queued on the caller's executor. An operation that completes at once if a state is
/// already as wished ends with this: a loop around such an operation would otherwise keep its thread, the client on
/// that thread would send no heartbeat, and the state could never change. For writers of recipes.
ZKASIO_EXPORT asio::awaitable<void> yield_turn();

/// The changes of a state that a mutex guards: for coroutines what a condition variable is for threads. For writers of
/// recipes:
///
///     std::unique_lock lock(mutex_);                            // code that changes the state
///     state_ = next;
///     change_.notify_all(std::move(lock));
///
///     const auto ready = [self] { return self->is_ready(); };   // code that waits; is_ready() locks
///     co_await self->change_.until(ready, "ready", self->path());
///
/// Each change has its own one_shot_event, made when a coroutine waits.
class change_event {
public:
    /// @param events of the client whose close ends all waits. @param guards the state; outlives this object.
    change_event(const operations& events, std::mutex& guards) : events_(events), mutex_(guards) {}

    /// *Completes when* `look()`, called at once and after each change, on the caller's executor and without the
    /// mutex, returns what converts to true; with that result. At once if it does so the first time: see yield_turn().
    /// *Fails with* what `look` throws, and as one_shot_event::wait(), naming this operation and this path.
    /// *Lifetime*: the object must exist until the wait has ended.
    template <class Look>
    asio::awaitable<std::invoke_result_t<Look&>> until(Look look, std::string operation, std::string path) {
        for (;;) {
            const one_shot_event change = next();  // first: a change between these two lines is not missed
            if (auto seen = look()) co_return seen;
            try {
                co_await change.wait();
            } catch (...) {
                rethrow_as(operation, path);
            }
        }
    }

    /// Fired by the next notify_all(). Locks the mutex.
    ZKASIO_EXPORT one_shot_event next();

    /// @param lock of the mutex: the waiting coroutines are told after the mutex was unlocked.
    void notify_all(std::unique_lock<std::mutex> lock) noexcept {
        const std::optional<one_shot_event> waited_for = std::exchange(next_, std::nullopt);
        lock.unlock();
        if (waited_for) waited_for->fire();
    }

private:
    const operations events_;
    std::mutex& mutex_;
    std::optional<one_shot_event> next_;  // nothing: no coroutine waits
};

/// An operation that one coroutine at a time may run, such as next() of a stream: a second one is refused. On any
/// threads. For writers of recipes.
class one_at_a_time {
    struct end_turn {
        void operator()(std::atomic<bool>* busy) const noexcept { busy->store(false); }
    };

public:
    /// Ends when destroyed; must not outlive the one_at_a_time.
    using turn = std::unique_ptr<std::atomic<bool>, end_turn>;

    /// @param what for example "next() of this stream". Throws errc::invalid_argument while there is another turn.
    [[nodiscard]] turn begin(std::string_view operation, std::string_view path, std::string_view what) {
        if (busy_.exchange(true))
            throw error(errc::invalid_argument, operation, path, "another coroutine awaits " + std::string(what));
        return turn(&busy_);
    }

private:
    std::atomic<bool> busy_{false};
};

}  // namespace zkasio
