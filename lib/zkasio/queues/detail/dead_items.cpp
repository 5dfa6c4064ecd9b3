#include <zkasio/queues/detail/dead_items.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/directories.hpp>
#include <zkasio/queues/detail/oldest_item.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

namespace zkasio::queue_detail {
namespace {

asio::awaitable<std::size_t> children_of(session on, std::string path) {
    const std::optional<node_stat> found = co_await on.exists(path);
    co_return found ? static_cast<std::size_t>(found->num_children) : 0;
}

}  // namespace

asio::awaitable<work_queue_info> count_items(session on, spec_ptr what) {
    work_queue_info n;
    n.claimed = co_await children_of(on, what->claims);
    const std::size_t items = co_await children_of(on, what->items);
    n.waiting = items - std::min(items, n.claimed);
    n.later = co_await children_of(on, what->later);
    n.dead = co_await children_of(on, what->dead);
    if (n.waiting > 0) n.oldest = co_await age_of_oldest(on, what);
    co_return n;
}

asio::awaitable<std::vector<dead_item>> list_dead(session on, spec_ptr what) {
    std::vector<dead_item> all;
    std::vector<std::string> names = co_await children_if_any(on, what->dead);
    std::sort(names.begin(), names.end());
    for (std::string& name : names) {
        const std::string path = join_path(what->dead, name);
        std::optional<node_data> item = co_await if_exists(on.get(path));
        if (!item) continue;  // another client has revived the item since the listing
        std::optional<node_data> reason = co_await if_exists(on.get(join_path(path, dead_reason)));
        dead_item& d = all.emplace_back();
        d.name = std::move(name);
        d.item = what->payload.value_or_all(std::move(item->data));
        if (reason) d.reason = std::move(reason->data);
        d.since = std::chrono::system_clock::time_point(std::chrono::milliseconds(item->stat.ctime));
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
        co_await on.sync(what->dead);
        std::optional<node_data> item = co_await if_exists(on.get(path));
        if (!item) co_return false;
        const std::optional<node_data> reason = co_await if_exists(on.get(join_path(path, dead_reason)));
        transaction steps;
        if (reason) steps.remove(join_path(path, dead_reason));
        steps.remove(path, item->stat.version);
        steps.create(what->item(prefix), bytes(std::move(item->data)),
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
