#include <zkasio/discovery/detail/provider_state.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/reports.hpp>

#include <cassert>
#include <exception>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::discovery_detail {
namespace {

ejection_policy policy_of(const provider_options& o) {
    ejection_policy policy;
    policy.failures = o.failures();
    policy.time = o.ejection_time();
    return policy;
}

std::uint64_t random_seed() {
    std::random_device source;
    return std::uint64_t(source()) << 32 | source();
}

// The cache has ended with the client: nothing has failed.
bool is_closed(const std::exception_ptr& failed) { return failure_of(failed) == errc::client_closed; }

std::shared_ptr<const std::vector<unreadable_instance>> and_the_directory(std::vector<unreadable_instance> others) {
    others.push_back(unreadable_instance{"", "the ACL of the directory does not allow to list it"});
    return std::make_shared<const std::vector<unreadable_instance>>(std::move(others));
}

const provider_state::ptr& require_valid(const provider_state::ptr& state) {
    if (!state) throw error(errc::invalid_argument, "provider", {}, "this provider was moved from");
    return state;
}

}  // namespace

provider_state::provider_state(const client& zk, std::string path, const provider_options& options,
                               const instance_format& format)
    : events_(zk),
      path_(std::move(path)),
      picker_(options.strategy().how(), policy_of(options), random_seed()),
      roster_(options.strategy().weight(), options.filter(), policy_of(options), format, std::string(node_name(path_))),
      pool_(std::make_unique<const pick_pool>()),
      change_(zk, mutex_) {}

// ------------------------------------------------------------------------------------------------------- following

asio::awaitable<void> provider_state::follow(ptr self, std::shared_ptr<const children_cache> cache) {
    std::exception_ptr failed;
    try {
        const cache_changes changes = cache->changes();
        for (;;) {
            const cache_update update = co_await changes.next();
            self->apply(update);
        }
    } catch (...) {
        failed = std::current_exception();
    }
    self->lose_sight();
    if (self->has_ended() || is_closed(failed)) co_return;
    std::rethrow_exception(failed);
}

void provider_state::apply(const cache_update& update) {
    if (update.look_again) {
        roster_.begin_all();
        update.now.for_each_child(path_, [this](const std::string& node, const cached_node& is) { set(node, is); });
        roster_.end_all();
    }
    for (const node_delta& d : update.changes) {
        if (d.path == path_) continue;
        const std::string node(node_name(d.path));
        if (d.after)
            set(node, d.after);
        else
            roster_.erase(node);
    }
    listing next = roster_.all();
    if (const cached_node directory = update.now.find(path_); directory && !directory.readable())
        next.unreadable = and_the_directory(*next.unreadable);
    next.current = update.now.current();
    publish(std::move(next), std::make_unique<const pick_pool>(roster_.pickable()));
}

void provider_state::set(const std::string& node, const cached_node& is) {
    roster_.set(node, {is.data(), is.stat().czxid, is.stat().mzxid, is.readable()});
}

// Until the next session, no changes are reported: the known listing is no longer current.
void provider_state::lose_sight() {
    const listing_ptr last = latest();
    if (!last || !last->current) return;
    listing next = *last;
    next.current = false;
    publish(std::move(next), nullptr);
}

void provider_state::publish(listing next, std::unique_ptr<const pick_pool> pool) {
    std::unique_lock lock(mutex_);
    if (ended_) return;
    assert(next.unreadable);
    next.version = (latest_ ? latest_->version : 0) + 1;
    const listing_ptr gone = std::exchange(latest_, std::make_shared<const listing>(std::move(next)));
    if (pool) pool_.set(std::move(pool));
    change_.notify_all(std::move(lock));
}

void provider_state::end(std::exception_ptr why) noexcept {
    std::unique_lock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    why_ = std::move(why);
    pool_.set(std::make_unique<const pick_pool>());
    if (latest_ && latest_->current) {
        auto last = std::make_shared<listing>(*latest_);
        last->current = false;
        ++last->version;
        latest_ = std::move(last);
    }
    change_.notify_all(std::move(lock));
}

// ---------------------------------------------------------------------------------------------------------- looking

picked provider_state::try_pick(std::optional<std::uint64_t> key) noexcept {
    return pool_.read([&](const pick_pool& pool) noexcept {
        const member_ptr* m = key ? picker_.for_key(pool, *key) : picker_.next(pool);
        return m ? picked(*m) : picked();
    });
}

listing_ptr provider_state::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

bool provider_state::has_ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
}

void provider_state::check_alive(std::string_view operation) const {
    const std::lock_guard lock(mutex_);
    if (!ended_) return;
    if (why_) rethrow_end_of_loop(why_, operation, path_);
    throw error(errc::client_closed, operation, path_);
}

asio::awaitable<picked> provider_state::pick(ptr self, std::optional<std::uint64_t> key) {
    picked next = require_valid(self)->try_pick(key);
    if (next) co_return next;
    const auto pick_or_end = [self, key] {
        self->check_alive("pick");
        return self->try_pick(key);
    };
    next = co_await self->change_.until(pick_or_end, "pick", self->path_);
    co_return next;
}

asio::awaitable<void> provider_state::ready(ptr self) {
    const auto listed = [self = require_valid(self)] {
        listing_ptr now = self->latest();
        if (!now) self->check_alive("ready");
        return now;
    };
    co_await self->change_.until(listed, "ready", self->path_);
    co_await yield_turn();
}

asio::awaitable<service_view> provider_state::changed(ptr self, service_view seen) {
    const auto other_view = [self = require_valid(self), seen] {
        self->check_alive("changed");
        service_view now = make_service_view::of(self->latest());
        return now.version() != seen.version() ? std::optional(std::move(now)) : std::nullopt;
    };
    const std::optional<service_view> now = co_await self->change_.until(other_view, "changed", self->path_);
    co_await yield_turn();
    co_return *now;
}

}  // namespace zkasio::discovery_detail
