// The part of lock_queue that names, in the log, what may have been meant otherwise.

#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/recipe/reports.hpp>

#include <chrono>
#include <optional>
#include <utility>

namespace zkasio::lock_detail {

// A guard of this client that no body uses, and that the head waits for: perhaps the waiting coroutine has it.
contender_ptr lock_queue::guard_in_the_way(boot_clock::time_point since_at_least) const {
    const contender_ptr head = order_.head();
    contender_ptr owner = head && head->since <= since_at_least ? order_.first_owner() : nullptr;
    if (!owner || owner->now() != stage::owner || owner->asked.keeps_place || owner->bodies.any()) return nullptr;
    std::optional<boot_clock::time_point> since = owner->since;
    if (const auto user = owner->asked.user.lock()) since = user->idle_guard_since();
    return since && *since <= since_at_least ? owner : nullptr;
}

void lock_queue::warn_later() {
    if (warning_timer_ || over_) return;
    const bool waits = !warned_of_guard_ && order_.any_waiting() && order_.first_owner();
    const bool bodies = !warned_of_bodies_ && !unfinished_.empty();
    if (!waits && !bodies) return;
    warning_timer_.emplace(on_.get_executor(), long_wait);
    warning_timer_->async_wait([weak = weak_from_this()](std::error_code cancelled) {
        const auto self = cancelled ? nullptr : weak.lock();
        if (!self) return;
        self->warning_timer_.reset();
        self->warn();
        self->warn_later();
    });
}

void lock_queue::warn() {
    const boot_clock::time_point now = boot_clock::now();
    const contender_ptr owner = warned_of_guard_ ? nullptr : guard_in_the_way(now - long_wait);
    if (owner) {
        warned_of_guard_ = true;
        warn_of_guard(on_, directory(), owner->path);
    }
    if (warned_of_bodies_ || unfinished_.empty() || now - unfinished_since_ < long_wait) return;
    warned_of_bodies_ = true;
    for (const contender_ptr& c : unfinished_)
        log_warning(on_,
                    directory() + ": a body still runs 10 s or more after its lock, with the node " + c->path +
                        ", was lost: acquires of this client wait for its end",
                    {{"path", directory()}, {"node", c->path}});
}

}  // namespace zkasio::lock_detail
