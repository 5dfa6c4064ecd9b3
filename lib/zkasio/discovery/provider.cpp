#include <zkasio/discovery/provider.hpp>

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/detail/member_list.hpp>
#include <zkasio/discovery/detail/provider_state.hpp>
#include <zkasio/discovery/detail/roster.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::discovery_detail {

/// The background work of a provider, for as long as the provider lives. The body of the loop holds the cache and the
/// state, and neither of them holds the loop: all are freed even if no event loop runs. Closes in the background when
/// destroyed.
class provider_work {
public:
    provider_work(const client& zk, const std::string& path, provider_state::ptr state);
    provider_work(const provider_work&) = delete;
    provider_work& operator=(const provider_work&) = delete;
    ~provider_work();

    asio::awaitable<void> close() const;

private:
    const provider_state::ptr state_;
    const std::shared_ptr<const children_cache> cache_;
    const std::shared_ptr<session_loop> loop_;  // shared with what close() returns
};

namespace {

session_loop begin_to_follow(const client& zk, const provider_state::ptr& state,
                             const std::shared_ptr<const children_cache>& cache) {
    auto body = [state, cache](const session&) { return provider_state::follow(state, cache); };
    auto on_end = [state](std::exception_ptr why) { state->end(std::move(why)); };
    return run_in_each_session(zk, body, on_end);
}

asio::awaitable<void> closed(provider_state::ptr state, asio::awaitable<void> cache_closed,
                             std::shared_ptr<session_loop> loop) {
    state->end(nullptr);
    loop->stop();
    co_await std::move(cache_closed);
    try {
        co_await loop->stopped();
    } catch (const std::system_error& e) {
        // The loop is over: an earlier error does not matter.
        if (e.code() == condition::cancelled) throw;
    }
}

asio::awaitable<void> closed_in_background(asio::awaitable<void> closing) {
    try {
        co_await std::move(closing);
    } catch (const error&) {  // the client was closed first, which ends the cache and the loop, too
    }
}

}  // namespace

provider_work::provider_work(const client& zk, const std::string& path, provider_state::ptr state)
    : state_(std::move(state)),
      cache_(std::make_shared<const children_cache>(zk, path)),
      loop_(std::make_shared<session_loop>(begin_to_follow(zk, state_, cache_))) {}

provider_work::~provider_work() {
    state_->end(nullptr);
    toolbox(state_->events()).run_in_background(closed_in_background(close()));
    loop_->stop();
}

asio::awaitable<void> provider_work::close() const { return closed(state_, cache_->close(), loop_); }

}  // namespace zkasio::discovery_detail

namespace zkasio {

using namespace discovery_detail;

// ---------------------------------------------------------------------------------------------------------- picked

picked::picked(std::shared_ptr<const member> of) noexcept : of_(std::move(of)) {
    of_->counted->outstanding.fetch_add(1, std::memory_order_relaxed);
}

picked::~picked() {
    if (of_) of_->counted->outstanding.fetch_sub(1, std::memory_order_relaxed);
}

picked& picked::operator=(picked&& other) noexcept {
    const picked gone = std::move(*this);
    of_ = std::move(other.of_);
    failed_ = other.failed_;
    return *this;
}

const service_instance& picked::operator*() const noexcept { return of_->instance; }

void picked::report_failure() noexcept {
    if (of_ && !std::exchange(failed_, true)) of_->counted->report_failure();
}

std::uint32_t picked::outstanding() const noexcept {
    return of_ ? of_->counted->outstanding.load(std::memory_order_relaxed) : 0;
}

// --------------------------------------------------------------------------------------------------------- provider

namespace {

asio::awaitable<void> refused_close() {
    throw error(errc::invalid_argument, "provider", {}, "this provider was moved from");
    co_return;
}

}  // namespace

provider_options& provider_options::eject_after(std::uint16_t failures, any_duration time) {
    const std::chrono::milliseconds ejected_for = time;
    if (ejected_for <= ejected_for.zero())
        throw error(errc::invalid_argument, "provider", {}, "an instance is ejected for more than no time");
    failures_ = failures;
    ejection_time_ = ejected_for;
    return *this;
}

provider::provider(const client& zk, const std::string& base, const std::string& name,
                   const provider_options& options)
    : provider(zk, base, name, instance_format(), options) {}

provider::provider(const registry& in, const std::string& name, const provider_options& options)
    : provider(in.zk_, in.base_, name, in.options_.format(), options) {}

provider::provider(const client& zk, const std::string& base, const std::string& name, const instance_format& format,
                   const provider_options& options)
    : path_(service_path(base, name)) {
    if (options.strategy().how() == pick_strategy::kind::weighted && !options.strategy().weight())
        throw error(errc::invalid_argument, "provider", path_, "the weight function is empty");
    state_ = std::make_shared<provider_state>(zk, path_, options, format);
    try {
        work_ = std::make_unique<provider_work>(zk, path_, state_);
    } catch (const error&) {
        rethrow_as("provider", path_);
    }
}

provider::provider(provider&& other) noexcept = default;

provider& provider::operator=(provider&& other) noexcept {
    const provider gone = std::move(*this);
    path_ = std::move(other.path_);
    state_ = std::move(other.state_);
    work_ = std::move(other.work_);
    return *this;
}

provider::~provider() = default;

asio::awaitable<picked> provider::pick() const { return provider_state::pick(state_, std::nullopt); }
asio::awaitable<picked> provider::pick_for(std::string_view key) const {
    return provider_state::pick(state_, hash_of(key));
}

picked provider::try_pick() const noexcept { return state_ ? state_->try_pick(std::nullopt) : picked(); }
picked provider::try_pick_for(std::string_view key) const noexcept {
    return state_ ? state_->try_pick(hash_of(key)) : picked();
}

asio::awaitable<void> provider::ready() const { return provider_state::ready(state_); }
asio::awaitable<void> provider::close() const { return work_ ? work_->close() : refused_close(); }
asio::awaitable<service_view> provider::changed(service_view seen) const {
    return provider_state::changed(state_, std::move(seen));
}

service_view provider::view() const { return state_ ? make_service_view::of(state_->latest()) : service_view(); }

}  // namespace zkasio
