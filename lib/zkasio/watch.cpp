#include <zkasio/watch.hpp>

#include <zkasio/detail/await.hpp>

namespace zkasio {

watch& watch::operator=(watch&& other) noexcept {
    if (this != &other) {
        leave();
        core_ = std::move(other.core_);
        state_ = std::move(other.state_);
    }
    return *this;
}

void watch::leave() noexcept {
    if (!core_ || !state_) return;
    detail::on_strand(core_, [core = core_, state = state_] { core->leave_watch(state); });
    core_.reset();
    state_.reset();
}

void watch::then(std::function<void(std::error_code, node_change)> f) const {
    auto call = [f = std::move(f), raw = state_.get()] { f(raw->fired->code, static_cast<node_change>(raw->event)); };
    if (state_->fired->done) return call();
    state_->fired->then = std::move(call);
}

const std::string& watch::path() const noexcept { return state_->path; }

asio::awaitable<watch_event> watch::changed() const {
    const auto state = state_;
    const detail::reply r = co_await detail::wait_for(core_, state->fired);
    if (r.code) throw error(r.code, "watch", state->path);
    watch_event event;
    event.what = static_cast<node_change>(state->event);
    event.path = state->path;
    co_return event;
}

}  // namespace zkasio
