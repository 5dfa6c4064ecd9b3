#include <zkasio/membership/group_observer.hpp>

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/detail/member_names.hpp>
#include <zkasio/one_at_a_time.hpp>
#include <zkasio/wait_as.hpp>

#include <optional>
#include <utility>

namespace zkasio {

using namespace membership_detail;

namespace {

children_cache cache_of(const client& zk, std::string path, group_names names) {
    children_cache_options options;
    if (!needs_data(names)) options.without_data();
    return children_cache(zk, std::move(path), options);
}

}  // namespace

struct group_observer::state {
    state(const client& zk, std::string path, group_names n)
        : names(n), cache(cache_of(zk, std::move(path), n)), changes(cache.changes()) {}

    const group_names names;
    const children_cache cache;
    const cache_changes changes;
    one_at_a_time reading;
    std::optional<group_view> told;  // what next() has returned last

    static asio::awaitable<void> ready(std::shared_ptr<state> self);
    static asio::awaitable<group_view> next(std::shared_ptr<state> self);

private:
    static const state& there(const std::shared_ptr<state>& self);
    asio::awaitable<cache_update> next_update() const;
};

const group_observer::state& group_observer::state::there(const std::shared_ptr<state>& self) {
    if (!self) throw error(errc::invalid_argument, "observe", {}, "this observer was moved from");
    return *self;
}

asio::awaitable<void> group_observer::state::ready(std::shared_ptr<state> self) {
    const children_cache& cache = there(self).cache;
    try {
        co_await cache.ready();
    } catch (const error&) {
        rethrow_as("observe", cache.path());
    }
}

asio::awaitable<cache_update> group_observer::state::next_update() const {
    try {
        co_return co_await changes.next();
    } catch (const error&) {
        rethrow_as("observe", cache.path());
    }
}

asio::awaitable<group_view> group_observer::state::next(std::shared_ptr<state> self) {
    there(self);
    const auto turn = self->reading.begin("observe", self->cache.path(), "next() of this observer");
    for (;;) {
        const cache_update update = co_await self->next_update();
        group_view view = members_in(self->names, children_view(update.now, self->cache.path()), self->cache.path());
        if (self->told == view) continue;
        self->told = view;
        co_return view;
    }
}

group_observer::group_observer(client zk, std::string path, group_names names)
    : state_(std::make_shared<state>(zk, std::move(path), names)) {}

asio::awaitable<void> group_observer::ready() const { return state::ready(state_); }

group_view group_observer::members() const {
    return state_ ? members_in(state_->names, state_->cache.snapshot(), state_->cache.path()) : group_view();
}

asio::awaitable<group_view> group_observer::next() const { return state::next(state_); }

}  // namespace zkasio
