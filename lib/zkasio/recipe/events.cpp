#include <zkasio/recipe/events.hpp>

#include <zkasio/detail/client/await.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <atomic>

namespace zkasio {

one_shot_event::one_shot_event(std::shared_ptr<detail::core> core)
    : core_(std::move(core)), state_(std::make_shared<detail::one_shot_state>()) {}

void one_shot_event::fire() const noexcept {
    if (core_) detail::on_strand(core_, [core = core_, state = state_] { core->waits().fire(state); });
}

namespace {

[[noreturn]] void moved_from() {
    throw error(errc::invalid_argument, "one_shot_event", {}, "this object was moved from");
}

asio::awaitable<void> fail() {
    moved_from();
    co_return;
}

}  // namespace

// wait() is no coroutine itself: there may be very many waiters.
asio::awaitable<void> one_shot_event::wait() const { return core_ ? detail::wait_for_or_throw(core_, state_) : fail(); }

asio::awaitable<bool> one_shot_event::run_body(std::function<asio::awaitable<void>()> body, detail::core_ptr core,
                                               detail::one_shot_ptr state) {
    if (!core) moved_from();
    if (!body) throw error(errc::invalid_argument, "run_until", {}, "the body is empty");
    const auto stopped = std::make_shared<std::atomic<bool>>(false);
    detail::arm_function arm = [core, state, stopped](const std::shared_ptr<detail::body_run>& run) {
        return detail::stop_when(core, state, run, [stopped](std::error_code code) {
            if (code) return false;
            stopped->store(true);
            return true;
        });
    };
    bool aborted = false;
    try {
        co_await detail::run_cancellable(std::move(body), std::move(arm), detail::body_strand::callers);
    } catch (const std::system_error& e) {
        if (!stopped->load() || e.code() != asio::error::operation_aborted) throw;
        aborted = true;
    }
    co_return !aborted;
}

asio::awaitable<void> yield_turn() { co_await asio::post(asio::use_awaitable); }

one_shot_event change_event::next() {
    const std::lock_guard lock(mutex_);
    if (!next_) next_.emplace(toolbox(events_).make_one_shot_event());
    return *next_;
}

}  // namespace zkasio
