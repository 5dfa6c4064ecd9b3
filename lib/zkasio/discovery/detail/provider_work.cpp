#include <zkasio/discovery/detail/provider_work.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <exception>
#include <system_error>
#include <utility>

namespace zkasio::discovery_detail {
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
