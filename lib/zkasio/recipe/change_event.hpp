#pragma once

#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace zkasio {

/// A repeated change of a state that a mutex guards: for coroutines what a condition variable is for threads. Each
/// change has its own one_shot_event, made when a coroutine waits. For writers of recipes:
///
///     for (;;) {
///         const one_shot_event change = state.next_change();  // first: a change between these two lines
///         if (state.is_as_wished()) co_return;                // is not missed
///         co_await wait_as(change, "what", path);
///     }
///
/// No member locks: the mutex belongs to the owner of this object.
class change_event {
public:
    /// @param events of the client whose close ends all waits.
    explicit change_event(const operations& events) : events_(events) {}

    /// To be called under the mutex. The event is fired by the next notify_all().
    one_shot_event next() {
        if (!next_) next_.emplace(toolbox(events_).make_one_shot_event());
        return *next_;
    }

    /// @param lock of the mutex: the event is fired after the mutex was unlocked.
    void notify_all(std::unique_lock<std::mutex> lock) noexcept {
        const std::optional<one_shot_event> waited_for = std::exchange(next_, std::nullopt);
        lock.unlock();
        if (waited_for) waited_for->fire();
    }

private:
    const operations events_;
    std::optional<one_shot_event> next_;  // nothing: no coroutine waits
};

}  // namespace zkasio
