#include <zkasio/one_shot.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/stop_when.hpp>

#include <atomic>

namespace zkasio {

one_shot::one_shot(std::shared_ptr<detail::core> core)
    : core_(std::move(core)), state_(std::make_shared<detail::waitable>()) {}

void one_shot::fire() const noexcept {
    detail::on_strand(core_, [core = core_, state = state_] { core->fire(state); });
}

asio::awaitable<void> one_shot::wait() const { return detail::wait_for_or_throw(core_, state_); }

asio::awaitable<bool> one_shot::run_until(std::function<asio::awaitable<void>()> body) const {
    const auto core = core_;
    const auto state = state_;
    const auto stopped = std::make_shared<std::atomic<bool>>(false);
    detail::arm_function arm = [core, state, stopped](const std::shared_ptr<detail::body_run>& run) {
        return detail::stop_when(core, state, run, [stopped](const detail::reply& r) {
            if (r.code) return false;
            stopped->store(true);
            return true;
        });
    };
    bool aborted = false;
    try {
        co_await detail::run_cancellable(std::move(body), std::move(arm));
    } catch (const std::system_error& e) {
        if (!stopped->load() || e.code() != asio::error::operation_aborted) throw;
        aborted = true;
    }
    co_return !aborted;
}

}  // namespace zkasio
