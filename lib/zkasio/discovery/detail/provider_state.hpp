#pragma once

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/detail/listing.hpp>
#include <zkasio/discovery/detail/pick_pool.hpp>
#include <zkasio/discovery/detail/published.hpp>
#include <zkasio/discovery/detail/roster.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/one_shot_event.hpp>
#include <zkasio/session_loop.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

namespace zkasio::discovery_detail {

/// Behind a provider: follows a children_cache on the client's strand, and shows what it knows to any threads. Begins
/// and ends with begin() and stop().
class provider_state : public std::enable_shared_from_this<provider_state> {
public:
    using ptr = std::shared_ptr<provider_state>;

    provider_state(const client& zk, std::string path, const provider_options& options);
    void begin(client zk);
    void stop() noexcept;

    /// From any thread.
    picked try_pick(std::optional<std::uint64_t> key) noexcept;
    listing_ptr latest() const;

    static asio::awaitable<picked> pick(ptr self, std::optional<std::uint64_t> key);
    static asio::awaitable<void> ready(ptr self);
    static asio::awaitable<service_view> changed(ptr self, service_view seen);
    static asio::awaitable<void> closed(ptr self);

private:
    static asio::awaitable<void> follow(ptr self);
    void apply(const cache_update& update);
    void set(const std::string& node, const cached_node& is);
    void publish(listing next, std::unique_ptr<const pick_pool> pool);
    void lose_sight();
    void end(std::error_code why) noexcept;
    void notify(std::unique_lock<std::mutex> lock);
    one_shot_event next_notice();
    void check() const;

    const operations events_;
    const std::string path_;
    const children_cache cache_;
    session_loop loop_;
    picker picker_;
    roster roster_;  // on the strand
    published<pick_pool> pool_;

    mutable std::mutex mutex_;  // of what follows, and pool_.set()
    listing_ptr latest_;        // null: not ready
    std::optional<one_shot_event> waited_for_;
    std::error_code ended_;
};

}  // namespace zkasio::discovery_detail
