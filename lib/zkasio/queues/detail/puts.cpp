#include <zkasio/queues/detail/puts.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/directories.hpp>
#include <zkasio/queues/detail/due_clock.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/rethrow_to_caller.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <optional>
#include <system_error>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::size_t most_puts = 1000;  // in one transaction

// Waits until `more` items have room, or the queue is empty.
asio::awaitable<void> until_room(session on, spec_ptr what, std::size_t more) {
    const std::size_t most = what->options.most_items();
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        const std::optional<watched<node_children>> found = co_await if_exists(on.children_and_watch(what->items));
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
asio::awaitable<std::string> prefix_for(session on, receipts with, spec_ptr what, put_options how) {
    const item_names& names = what->names;
    if (how.delay() == how.delay().zero() && !names.tell_times()) co_return what->item(names.prefix(how));
    const server_time due = co_await ask_servers_time(on, with, "put") + how.delay();
    co_return names.tell_times() ? what->item(names.prefix(how, due))
                                 : join_path(what->later, names.later_prefix(due, how));
}

// Runs a step that a put needs before its transaction. Errors of the step never say that the items may be there.
template <class T>
asio::awaitable<T> not_yet_put(asio::awaitable<T> preparation, spec_ptr what) {
    try {
        co_return co_await std::move(preparation);
    } catch (const error&) {
        rethrow_as_not_written();
    } catch (const std::system_error& e) {  // of a pause that was cancelled
        throw error(e.code(), "put", what->path);
    }
}

}  // namespace

void require_size(const queue_spec& what, const bytes& item) {
    if (item.size() <= what.largest_item()) return;
    throw error(errc::too_large, "put", what.path,
                "an item has at most " + std::to_string(what.largest_item()) + " bytes");
}

void add_put(transaction& steps, const queue_spec& what, std::string prefix, bytes item) {
    require_size(what, item);
    steps.create(std::move(prefix), what.payload.pack(std::move(item).take()),
                 what.of_mode(create_mode::persistent_sequential));
}

std::size_t count_for_transaction(const std::vector<bytes>& items, std::size_t first, const queue_spec& what,
                                  std::string_view prefix) {
    const std::size_t around = what.bytes_around_item() + prefix.size();
    std::size_t n = 1, size = items[first].size() + around;
    for (; first + n < items.size() && n < most_puts; ++n) {
        size += items[first + n].size() + around;
        if (size > what.largest_item()) break;
    }
    return n;
}

asio::awaitable<void> put_together(session on, spec_ptr what, std::vector<bytes> items, put_options how) {
    const receipts with(on, what->receipts, what->options.acl(), missing_parents::create_persistent);
    if (what->options.most_items() > 0) co_await not_yet_put(until_room(on, what, items.size()), what);
    const std::string prefix = co_await not_yet_put(prefix_for(on, with, what, how), what);
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
        co_await not_yet_put(create_directories(on, what), what);
        co_await not_yet_put(pauses.pause(), what);
    }
}

}  // namespace zkasio::queue_detail
