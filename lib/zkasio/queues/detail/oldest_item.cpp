#include <zkasio/queues/detail/oldest_item.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/item_names.hpp>
#include <zkasio/queues/detail/due_clock.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/sequence_suffix.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace zkasio::queue_detail {

std::vector<std::string> oldest_first(const item_names& layout, std::vector<std::string> items,
                                      const std::vector<std::string>& taken) {
    const std::unordered_set<std::string> claimed(taken.begin(), taken.end());
    std::vector<std::pair<std::int32_t, std::string>> order;
    std::optional<std::uint32_t> base;
    for (std::string& name : items) {
        const std::string_view prefix = layout.prefix_of(name);
        if (prefix.empty() || claimed.contains(name)) continue;
        const auto n = static_cast<std::uint32_t>(sequence_behind(name, prefix)->number);
        if (!base) base = n;
        order.emplace_back(static_cast<std::int32_t>(n - *base), std::move(name));
    }
    std::sort(order.begin(), order.end());
    std::vector<std::string> names;
    names.reserve(order.size());
    for (auto& [number, name] : order) names.push_back(std::move(name));
    return names;
}

asio::awaitable<std::optional<std::chrono::milliseconds>> age_of_oldest(session on, spec_ptr what) {
    std::vector<std::string> items = co_await children_if_any(on, what->items);
    const std::vector<std::string> taken = co_await children_if_any(on, what->claims);
    std::optional<node_stat> oldest;
    for (const std::string& name : oldest_first(what->names, std::move(items), taken)) {
        try {
            oldest = co_await on.exists(what->item(name));
        } catch (const error& e) {
            if (e.code() != zk_errc::no_auth) throw;  // new servers do not tell of a node that may not be read
        }
        if (oldest) break;  // the others are done meanwhile
    }
    if (!oldest) co_return std::nullopt;
    const receipts with(on, what->receipts, what->options.acl(), missing_parents::create_persistent);
    try {
        const server_time now = co_await ask_servers_time(on, with, "info");
        const auto put = std::chrono::milliseconds(oldest->ctime);
        co_return std::max(std::chrono::milliseconds::zero(), now.time_since_epoch() - put);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_auth) throw;
    }
    co_return std::nullopt;
}

}  // namespace zkasio::queue_detail
