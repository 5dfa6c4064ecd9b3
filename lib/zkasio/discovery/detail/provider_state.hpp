#pragma once

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/detail/pick_pool.hpp>
#include <zkasio/discovery/detail/published.hpp>
#include <zkasio/discovery/detail/roster.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/recipe/events.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace zkasio::discovery_detail {

/// The state of a provider: follows a children_cache on the client's strand, and shows the known instances to any
/// threads. The awaitables of pick() and others hold this object, and neither the cache nor the loop that follows the
/// cache: both end with the provider, even if awaitables are left.
class provider_state {
public:
    using ptr = std::shared_ptr<provider_state>;

    provider_state(const client& zk, std::string path, const provider_options& options,
                   const instance_format& format = instance_format());

    /// The body of the loop: returns once this state has ended, and when the client is closed.
    static asio::awaitable<void> follow(ptr self, std::shared_ptr<const children_cache> cache);
    /// Nothing is picked from now on. @param why null: the provider or the client was closed. Only the first call
    /// has an effect.
    void end(std::exception_ptr why) noexcept;

    const operations& events() const noexcept { return events_; }

    /// From any thread.
    picked try_pick(std::optional<std::uint64_t> key) noexcept;
    listing_ptr latest() const;

    static asio::awaitable<picked> pick(ptr self, std::optional<std::uint64_t> key);
    static asio::awaitable<void> ready(ptr self);
    static asio::awaitable<service_view> changed(ptr self, service_view seen);

private:
    void apply(const cache_update& update);
    void set(const std::string& node, const cached_node& is);
    void publish(listing next, std::unique_ptr<const pick_pool> pool);
    void lose_sight();
    bool has_ended() const;
    void check_alive(std::string_view operation) const;

    const operations events_;
    const std::string path_;
    picker picker_;
    roster roster_;  // on the strand
    published<pick_pool> pool_;

    mutable std::mutex mutex_;  // guards the members below, and calls of pool_.set()
    listing_ptr latest_;        // null: not ready
    change_event change_;
    bool ended_ = false;
    std::exception_ptr why_;  // null: the provider or the client was closed
};

}  // namespace zkasio::discovery_detail
