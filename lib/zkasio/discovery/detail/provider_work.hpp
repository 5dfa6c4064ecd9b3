#pragma once

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/detail/provider_state.hpp>
#include <zkasio/session_loop.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

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

}  // namespace zkasio::discovery_detail
