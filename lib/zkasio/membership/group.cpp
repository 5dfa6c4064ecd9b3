#include <zkasio/membership/group.hpp>

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/detail/member_names.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio {

const member_info* group_view::find(std::string_view id) const noexcept {
    const auto found = std::lower_bound(members.begin(), members.end(), id,
                                        [](const member_info& m, std::string_view i) { return m.id < i; });
    return found != members.end() && found->id == id ? &*found : nullptr;
}

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
    enum class news { none, flags, members };  // `flags`: all but the members

    one_at_a_time reading;
    std::optional<group_view> known;  // the newest view
    bool told = true;                 // `known` was returned, unless there is none

    static asio::awaitable<group_view> next(std::shared_ptr<reader> self);
    static asio::awaitable<group_view> settled(std::shared_ptr<reader> self, std::chrono::nanoseconds quiet,
                                               std::chrono::nanoseconds at_most);

private:
    asio::awaitable<cache_update> next_update() const;
    static one_at_a_time::turn begin(const std::shared_ptr<reader>& self);
    static asio::awaitable<void> until_news(std::shared_ptr<reader> self);
    news take(const cache_update& update);
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

one_at_a_time::turn group_observer::reader::begin(const std::shared_ptr<reader>& self) {
    if (!self) throw error(errc::invalid_argument, "observe", {}, "this observer was moved from");
    return self->reading.begin("observe", self->path, "next() of this observer");
}

// A call of settled() that was cancelled has left news.
asio::awaitable<void> group_observer::reader::until_news(std::shared_ptr<reader> self) {
    while (self->told) {
        const cache_update update = co_await self->next_update();
        if (self->take(update) != news::none) self->told = false;
    }
}

asio::awaitable<group_view> group_observer::reader::next(std::shared_ptr<reader> self) {
    const auto turn = begin(self);
    co_await until_news(self);
    self->told = true;
    co_return *self->known;
}

asio::awaitable<group_view> group_observer::reader::settled(std::shared_ptr<reader> self,
                                                            std::chrono::nanoseconds quiet,
                                                            std::chrono::nanoseconds at_most) {
    const auto turn = begin(self);
    if (quiet < std::chrono::nanoseconds::zero() || at_most < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, "observe", self->path, "a time to settle is not negative");
    co_await until_news(self);
    const boot_clock::time_point end = boot_clock::after(at_most);
    const auto next = [&] { return self->next_update(); };
    boot_clock::time_point settled_at = boot_clock::after(quiet), due = settled_at;
    for (;;) {
        const std::optional<cache_update> update = co_await run_with_deadline(std::min(due, end), next);
        if (!update) break;
        const news what = self->take(*update);
        if (what == news::none) continue;
        // A connection that is back, and shows the same members, begins nothing anew: it may never last for `quiet`.
        if (what == news::members) settled_at = boot_clock::after(quiet);
        due = self->known->current ? settled_at : boot_clock::after(quiet);
    }
    self->told = true;
    co_return *self->known;
}

// Returns what of `known` has changed.
group_observer::reader::news group_observer::reader::take(const cache_update& update) {
    const children_view children(update.now, path);
    if (!known || update.look_again) {
        group_view view = members_in(names, children, path);
        if (known == view) return news::none;
        const bool are_other = !known || known->members != view.members;
        known = std::move(view);
        return are_other ? news::members : news::flags;
    }
    const bool are_other = apply_changes(*known, names, update.changes, path);
    const bool same = known->current == children.current() && known->readable == children.readable();
    known->current = children.current();
    known->readable = children.readable();
    if (are_other) return news::members;
    return same ? news::none : news::flags;
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

asio::awaitable<group_view> group_observer::settled(any_duration quiet, any_duration at_most) const {
    return reader::settled(state_ ? state_->changes : nullptr, quiet, at_most);
}

using namespace membership_detail;

namespace {

std::string checked_group_path(std::string path) {
    require_directory("group", path);
    return path;
}

// An object that was moved from has no path.
void check_there(const std::string& path, std::string_view operation) {
    if (path.empty()) throw error(errc::invalid_argument, operation, {}, "this group was moved from");
}

std::string unique_digits() {
    std::string id = new_protection_id();
    std::erase(id, '-');
    return id;
}

persistent_node_options node_options(const group_options& how) {
    persistent_node_options options;
    options.acl(how.acl());
    // kazoo creates the directory only once: so the directory has to stay.
    if (how.names() != group_names::curator) options.parents(missing_parents::create_persistent);
    return options;
}

asio::awaitable<group_membership> joined(client zk, std::string path, group_options how, std::string id, bytes data) {
    check_there(path, "join");
    const bool has_data = has_member_data(how.names());
    const auto refuse = [&](std::string_view why) { throw error(errc::invalid_argument, "join", path, why); };
    if (!has_data && data.size() > 0) refuse("the members of kazoo's parties have no data");
    // Checked for kazoo's parties, too: with Curator's names the same members may be in another group.
    if (id.empty() || id.find('/') != std::string::npos || !path_problem("/" + id).empty())
        refuse("'" + id + "' is no name of a node");
    const std::string node_path = join_path(path, member_name(how.names(), id, unique_digits()));
    try {
        persistent_node node(zk, node_path, member_data(how.names(), id, std::move(data).take()), node_options(how));
        co_await node.created();
        co_return group_membership(std::move(id), has_data, std::move(node));
    } catch (const std::system_error&) {
        rethrow_as("join", path);
    }
}

asio::awaitable<group_view> members_of(client zk, std::string path, group_names names) {
    check_there(path, "members");
    const group_observer observer(zk, path, names);
    co_await errors_as("members", path, observer.ready());
    group_view view = observer.members();
    if (!view.readable) throw error(zk_errc::no_auth, "members", path,
                                     "the ACL of the directory does not allow it to this client: see get_acl()");
    co_return view;
}

asio::awaitable<void> refuse_data(std::string path) {
    throw error(errc::invalid_argument, "set_data", path, "the members of kazoo's parties have no data");
    co_return;
}

}  // namespace

group::group(client zk, std::string path, group_options options)
    : zk_(std::move(zk)), path_(checked_group_path(std::move(path))), options_(std::move(options)) {}

asio::awaitable<group_membership> group::join(std::string id, bytes data) const {
    return joined(zk_, path_, options_, std::move(id), std::move(data));
}

asio::awaitable<group_view> group::members() const { return members_of(zk_, path_, options_.names()); }

group_observer group::observe() const {
    check_there(path_, "observe");
    return {zk_, path_, options_.names()};
}

asio::awaitable<void> group_membership::set_data(bytes data) const {
    return has_data_ ? node_.set_data(std::move(data)) : refuse_data(path());
}

}  // namespace zkasio
