#include <zkasio/queues/detail/queue_state.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/queues/detail/due_clock.hpp>
#include <zkasio/queues/detail/item_layout.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
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

namespace {

constexpr std::size_t most_reads = 64;  // dead items that are read together

// How many children each of these nodes has; 0 without the node. In one round trip.
asio::awaitable<std::vector<std::size_t>> numbers_of_children(session on, std::vector<std::string> paths) {
    std::vector<std::size_t> numbers;
    auto ask = [&]() -> asio::awaitable<void> {
        std::vector<pending_data> asked;
        for (const std::string& path : paths) asked.push_back(toolbox(on).start_exists(path));
        numbers.clear();
        for (const pending_data& a : asked) {
            const std::optional<node_data> found = co_await if_exists(a.result());
            numbers.push_back(found ? static_cast<std::size_t>(found->stat.num_children) : 0);
        }
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), ask);
    co_return numbers;
}

// The answer to a read of a dead item, or of its reason. Nothing: there is no such node, or the client may not read the
// node, which `refused` then tells.
asio::awaitable<std::optional<node_data>> answer_of(pending_data asked, std::string& refused) {
    std::optional<node_data> found;
    try {
        found = co_await if_exists(asked.result());
    } catch (const error& e) {
        if (e.code() != zk_errc::no_auth) throw;
        refused = e.what();
    }
    co_return found;
}

// These dead items, without those that another client has revived or removed. In one round trip.
asio::awaitable<std::vector<dead_item>> read_dead(session on, spec_ptr what, std::vector<std::string> names) {
    std::vector<dead_item> all;
    auto read = [&]() -> asio::awaitable<void> {
        std::vector<std::string> paths;
        for (const std::string& name : names) {
            paths.push_back(join_path(what->dead, name));
            paths.push_back(join_path(paths.back(), dead_reason));
        }
        const std::vector<pending_data> asked = toolbox(on).start_gets(std::move(paths));
        all.clear();
        for (std::size_t i = 0; i < names.size(); ++i) {
            std::string refused;
            std::optional<node_data> item = co_await answer_of(asked[2 * i], refused);
            std::optional<node_data> reason = co_await answer_of(asked[2 * i + 1], refused);
            if (!item && refused.empty()) continue;
            dead_item& d = all.emplace_back();
            d.name = names[i];
            d.reason = reason ? std::move(reason->data) : refused;
            if (!item) d.reason = refused;
            if (item) d.item = what->payload.value_or_all(std::move(item->data));
            if (item) d.since = std::chrono::system_clock::time_point(std::chrono::milliseconds(item->stat.ctime));
        }
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), read);
    co_return all;
}

struct dead_nodes {
    std::optional<node_data> item, reason;
};

// In one round trip.
asio::awaitable<dead_nodes> read_dead_nodes(session on, std::string path) {
    dead_nodes found;
    auto read = [&]() -> asio::awaitable<void> {
        const pending_data item = toolbox(on).start_get(path);
        const pending_data reason = toolbox(on).start_get(join_path(path, dead_reason));
        found.item = co_await if_exists(item.result());
        found.reason = co_await if_exists(reason.result());
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), read);
    co_return std::move(found);
}

}  // namespace

asio::awaitable<work_queue_info> count_items(session on, spec_ptr what) {
    work_queue_info n;
    std::vector<std::string> directories;
    for (const std::string* path : {&what->claims, &what->items, &what->later, &what->dead})
        directories.push_back(*path);
    const std::vector<std::size_t> numbers = co_await numbers_of_children(on, std::move(directories));
    n.claimed = numbers[0];
    n.waiting = numbers[1] - std::min(numbers[1], n.claimed);
    n.later = numbers[2];
    n.dead = numbers[3];
    if (n.waiting > 0) n.oldest = co_await age_of_oldest(on, what);
    co_return n;
}

asio::awaitable<std::vector<dead_item>> list_dead(session on, spec_ptr what) {
    std::vector<dead_item> all;
    std::vector<std::string> names = co_await children_if_any(on, what->dead);
    std::sort(names.begin(), names.end());
    for (auto first = names.begin(); first != names.end();) {
        const auto n = std::min<std::ptrdiff_t>(names.end() - first, most_reads);
        std::vector<std::string> some(first, first + n);
        std::vector<dead_item> read = co_await read_dead(on, what, std::move(some));
        std::move(read.begin(), read.end(), std::back_inserter(all));
        first += n;
    }
    co_return all;
}

asio::awaitable<bool> revive_item(session on, spec_ptr what, std::string name) {
    const std::string prefix(what->names.prefix_of_dead(name));
    const std::string path = join_path(what->dead, name);
    if (prefix.empty()) throw error(errc::invalid_argument, "revive", path, "this is no dead item's name");
    const receipts with(on, what->receipts, what->options.acl(), missing_parents::create_persistent);
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        // A server that lags behind may not know the item yet, or still show a former one of the same name: numbers
        // begin again in a directory that was re-created, and so do versions.
        co_await on.sync(what->dead);
        dead_nodes found = co_await read_dead_nodes(on, path);
        if (!found.item) co_return false;
        transaction steps;
        if (found.reason) steps.remove(join_path(path, dead_reason));
        steps.remove(path, found.item->stat.version);
        steps.create(what->item(prefix), bytes(std::move(found.item->data)),
                     what->of_mode(create_mode::persistent_sequential));
        bool no_directory = false;
        try {
            co_await with.apply(std::move(steps), "revive");
            co_return true;
        } catch (const error& e) {
            no_directory = e.code() == zk_errc::no_node && parent_path(e.path()) == what->items;
            const bool has_changed =
                e.path().starts_with(path) && (e.code() == zk_errc::no_node || e.code() == zk_errc::bad_version);
            if (e.outcome_unknown() || (!no_directory && !has_changed)) throw;
        }
        if (no_directory) co_await create_directories(on, what);
        co_await pauses.pause();
    }
}

}  // namespace zkasio::queue_detail
