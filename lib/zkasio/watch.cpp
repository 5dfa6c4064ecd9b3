#include <zkasio/watch.hpp>

#include <zkasio/detail/client/await.hpp>

namespace zkasio {

struct watch::use {
    use(detail::core_ptr c, detail::watch_ptr w, detail::view_root root) : core(std::move(c)), state(std::move(w)) {
        if (root) shown = std::make_unique<const std::string>(detail::shown_path(root, state->path));
    }
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    ~use() {
        detail::on_strand(core, [core = core, state = state] { core->requests().leave_watch(state); });
    }

    static asio::awaitable<watch_event> changed(std::shared_ptr<use> self) {
        check(self);
        const detail::watch_ptr state = self->state;
        const detail::wait_end failed = co_await detail::wait_for(self->core, state->fired);
        if (failed.code) throw error(failed.code, "watch", self->path());
        watch_event event;
        event.what = static_cast<node_change>(state->event);
        event.path = self->path();
        co_return event;
    }
    const std::string& path() const noexcept { return shown ? *shown : state->path; }
    static void check(const std::shared_ptr<use>& self) {
        if (!self) throw error(errc::invalid_argument, "watch", {}, "this watch was moved from");
    }

    detail::core_ptr core;
    detail::watch_ptr state;
    std::unique_ptr<const std::string> shown;  // the path in a view; null: the client itself
};

watch::watch(std::shared_ptr<detail::core> core, std::shared_ptr<detail::watch_state> state, const std::string* root)
    : use_(std::make_shared<use>(std::move(core), std::move(state), root)) {}

void watch::then(std::function<void(std::error_code, node_change)> f) const {
    use::check(use_);
    const detail::watch_ptr state = use_->state;
    auto call = [f = std::move(f), raw = state.get()] { f(raw->fired->code, static_cast<node_change>(raw->event)); };
    const auto keep = use_;  // `f` may destroy this
    keep->core->waits().then(*state->fired, std::move(call));
}

const std::string& watch::path() const noexcept {
    static const std::string none;
    return use_ ? use_->path() : none;
}

asio::awaitable<watch_event> watch::changed() const { return use::changed(use_); }

}  // namespace zkasio
