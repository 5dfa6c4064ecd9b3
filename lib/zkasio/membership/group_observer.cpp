#include <zkasio/membership/group_observer.hpp>

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/detail/member_names.hpp>
#include <zkasio/recipe/one_at_a_time.hpp>

#include <memory>
#include <optional>
#include <string>
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

// The coroutine of next() holds the reader, but not the cache: the cache ends with the observer, even during a call.
struct group_observer::reader {
    reader(group_names n, const children_cache& cache) : names(n), path(cache.path()), changes(cache.changes()) {}

    const group_names names;
    const std::string path;
    const cache_changes changes;
    one_at_a_time reading;
    std::optional<group_view> told;  // the view that next() has returned last

    static asio::awaitable<group_view> next(std::shared_ptr<reader> self);

private:
    asio::awaitable<cache_update> next_update() const;
    bool take(const cache_update& update);
};

struct group_observer::state {
    state(const client& zk, std::string path, group_names names)
        : cache(cache_of(zk, std::move(path), names)), changes(std::make_shared<reader>(names, cache)) {}

    const children_cache cache;
    const std::shared_ptr<reader> changes;
};

asio::awaitable<cache_update> group_observer::reader::next_update() const {
    try {
        co_return co_await changes.next();
    } catch (const error&) {
        rethrow_as("observe", path);
    }
}

asio::awaitable<group_view> group_observer::reader::next(std::shared_ptr<reader> self) {
    if (!self) throw error(errc::invalid_argument, "observe", {}, "this observer was moved from");
    const auto turn = self->reading.begin("observe", self->path, "next() of this observer");
    for (;;) {
        const cache_update update = co_await self->next_update();
        if (self->take(update)) co_return *self->told;
    }
}

// Returns whether `told` has changed.
bool group_observer::reader::take(const cache_update& update) {
    const children_view children(update.now, path);
    if (!told || update.look_again) {
        group_view view = members_in(names, children, path);
        if (told == view) return false;
        told = std::move(view);
        return true;
    }
    bool is_other = apply_changes(*told, names, update.changes, path);
    if (told->current != children.current() || told->readable != children.readable()) is_other = true;
    told->current = children.current();
    told->readable = children.readable();
    return is_other;
}

namespace {

asio::awaitable<void> until_ready(asio::awaitable<void> cache_ready, std::string path) {
    try {
        co_await std::move(cache_ready);
    } catch (const error&) {
        rethrow_as("observe", path);
    }
}

asio::awaitable<void> refuse_moved_from() {
    throw error(errc::invalid_argument, "observe", {}, "this observer was moved from");
    co_return;
}

}  // namespace

group_observer::group_observer(client zk, std::string path, group_names names)
    : state_(std::make_shared<state>(zk, std::move(path), names)) {}

asio::awaitable<void> group_observer::ready() const {
    return state_ ? until_ready(state_->cache.ready(), state_->cache.path()) : refuse_moved_from();
}

group_view group_observer::members() const {
    return state_ ? members_in(state_->changes->names, state_->cache.snapshot(), state_->cache.path()) : group_view();
}

asio::awaitable<group_view> group_observer::next() const {
    return reader::next(state_ ? state_->changes : nullptr);
}

}  // namespace zkasio
