#include <zkasio/queues/detail/puts.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/directories.hpp>
#include <zkasio/queues/detail/item_names.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <chrono>
#include <optional>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::size_t most_puts = 1000;  // in one transaction

// Waits until `more` items have room, or the queue is empty.
asio::awaitable<void> until_room(session on, spec_ptr what, std::size_t more) {
    const std::size_t most = what->options.most_items();
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        std::optional<watched<node_children>> found;
        try {
            found = co_await on.children_and_watch(what->items);
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
        }
        const std::size_t there = found ? found->value.names.size() : 0;
        if (there == 0 || there + more <= most) co_return;
        try {
            co_await found->changes.changed();
        } catch (...) {
            rethrow_as("put", what->path);
        }
        co_await pauses.pause();  // many puts may wait for the same item to be done
    }
}

// The beginning of the paths of these items: where they wait for a time, or for a consumer.
asio::awaitable<std::string> prefix_for(receipts with, spec_ptr what, put_options how) {
    if (how.delay() == how.delay().zero()) co_return what->item(item_prefix(how.priority()));
    const committed now = co_await with.apply(transaction(), "put");
    const auto time = std::chrono::time_point_cast<std::chrono::milliseconds>(now.at);
    co_return join_path(what->later, later_prefix(time + how.delay(), how.priority()));
}

}  // namespace

void add_put(transaction& steps, const queue_spec& what, std::string prefix, bytes item) {
    if (item.size() > what.largest_item())
        throw error(errc::too_large, "put", what.path,
                    "an item has at most " + std::to_string(what.largest_item()) + " bytes");
    steps.create(std::move(prefix), std::move(item), what.of_mode(create_mode::persistent_sequential));
}

std::size_t count_for_transaction(const std::vector<bytes>& items, std::size_t first, const queue_spec& what) {
    std::size_t n = 1, size = items[first].size() + what.bytes_around_item();
    for (; first + n < items.size() && n < most_puts; ++n) {
        size += items[first + n].size() + what.bytes_around_item();
        if (size > what.largest_item()) break;
    }
    return n;
}

asio::awaitable<void> put_together(session on, spec_ptr what, std::vector<bytes> items, put_options how) {
    const receipts with(on, what->receipts, what->options.acl(), missing_parents::create_persistent);
    if (what->options.most_items() > 0) co_await until_room(on, what, items.size());
    const std::string prefix = co_await prefix_for(with, what, how);
    transaction steps;
    for (bytes& item : items) add_put(steps, *what, prefix, std::move(item));
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        try {
            co_await with.apply(steps, "put");
            co_return;
        } catch (const error& e) {
            const bool no_directory = e.code() == zk_errc::no_node && e.path() == prefix;
            if (!no_directory || e.outcome_unknown()) throw;
        }
        co_await create_directories(on, what);
        co_await pauses.pause();
    }
}

}  // namespace zkasio::queue_detail
