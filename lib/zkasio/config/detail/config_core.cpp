#include <zkasio/config/detail/config_core.hpp>

#include <zkasio/config/detail/state_after.hpp>

#include <utility>

namespace zkasio::config_detail {

namespace {

state_ptr nothing_yet(std::shared_ptr<const void> fallback) {
    auto state = std::make_shared<config_state>();
    state->value = std::move(fallback);
    return state;
}

}  // namespace

config_core::config_core(const client& zk, std::string path, value_parser parse, std::shared_ptr<const void> fallback)
    : on_(zk),
      path_(std::move(path)),
      parse_(std::move(parse)),
      fallback_(std::move(fallback)),
      follower_(zk, path_, node_read::data),
      latest_(nothing_yet(fallback_)),
      change_(zk, mutex_) {}

// The core owns the follower, which keeps the function: so the function must not keep the core alive.
void config_core::listen(std::optional<node_mark> known) {
    follower_.tell_next(std::move(known), [weak = weak_from_this()](const node_report& said) {
        if (const auto self = weak.lock()) self->hear(said);
    });
}

void config_core::hear(const node_report& said) {
    if (said.ended) return publish(latest(), said.mark.code);
    publish(std::make_shared<config_state>(state_after(*latest(), said, path_, parse_, fallback_)), {});
    listen(said.mark);
}

// Waiters are told, and the old state is destroyed, without the lock.
void config_core::publish(state_ptr next, std::error_code ended) {
    std::unique_lock lock(mutex_);
    latest_.swap(next);
    if (!ended_) ended_ = ended;
    change_.notify_all(std::move(lock));
}

state_ptr config_core::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

void config_core::check() const {
    const std::lock_guard lock(mutex_);
    if (ended_) throw error(ended_, "config", path_);
}

}  // namespace zkasio::config_detail
