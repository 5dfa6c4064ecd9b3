#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/error.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/awaitable.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace zkasio {

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
    one_shot_event next() {
        const std::lock_guard lock(mutex_);
        if (!next_) next_.emplace(toolbox(events_).make_one_shot_event());
        return *next_;
    }

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

}  // namespace zkasio
