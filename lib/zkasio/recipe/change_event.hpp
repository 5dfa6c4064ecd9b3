#pragma once

#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace zkasio {

/// Something that happens again and again, to a state that a mutex guards: what a condition variable is for threads. A
/// one_shot_event for each time, made when somebody waits. For writers of recipes:
///
///     for (;;) {
///         const one_shot_event change = state.next_change();  // in this order: what comes between the two
///         if (state.is_as_wished()) co_return;                // is not missed
///         co_await wait_as(change, "what", path);
///     }
///
/// No member of its own is guarded: the mutex is its owner's.
class change_event {
public:
    /// @param events of the client whose close ends all waits.
    explicit change_event(const operations& events) : events_(events) {}

    /// With the mutex. Fired by the next notify_all().
    one_shot_event next() {
        if (!next_) next_.emplace(toolbox(events_).make_one_shot_event());
        return *next_;
    }

    /// @param lock of the mutex: those who wait are told behind it.
    void notify_all(std::unique_lock<std::mutex> lock) noexcept {
        const std::optional<one_shot_event> waited_for = std::exchange(next_, std::nullopt);
        lock.unlock();
        if (waited_for) waited_for->fire();
    }

private:
    const operations events_;
    std::optional<one_shot_event> next_;  // nothing: nobody waits
};

}  // namespace zkasio
