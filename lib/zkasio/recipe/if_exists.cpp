#include <zkasio/recipe/if_exists.hpp>

#include <zkasio/recipe/sequence_suffix.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <cstdint>

namespace zkasio {

asio::awaitable<std::vector<std::string>> children_if_any(operations on, std::string path) {
    std::optional<node_children> found = co_await if_exists(on.children(std::move(path)));
    std::vector<std::string> names;
    if (found) names = std::move(found->names);
    co_return names;
}

namespace {

// None if there is no node, or if the answer is an error.
asio::awaitable<std::int32_t> number_of_children(pending_data exists) {
    try {
        const node_data found = co_await exists.result();
        co_return found.stat.num_children;
    } catch (const error& e) {
        if (e.code() == condition::cancelled) throw;
        co_return 0;
    }
}

asio::awaitable<bool> is_any_named(operations on, std::string path, std::string marker) {
    try {
        const std::vector<std::string> names = co_await children_if_any(on, path);
        co_return std::any_of(names.begin(), names.end(),
                              [&](const std::string& name) { return sequence_behind(name, marker).has_value(); });
    } catch (const error& e) {
        if (e.code() == condition::cancelled) throw;
        co_return false;
    }
}

}  // namespace

asio::awaitable<bool> has_contenders(operations on, std::string path, std::string marker, pending_data earlier) {
    constexpr std::int32_t many = 16;  // of so many children, a listing would cost the servers too much
    const std::int32_t before = co_await number_of_children(earlier);
    if (before == 0) co_return false;
    if (before <= many) {
        const bool named = co_await is_any_named(on, path, std::move(marker));
        co_return named;
    }
    const pending_data now = toolbox(on).start_exists(std::move(path));
    const std::int32_t left = co_await number_of_children(now);
    co_return left > 0;
}

}  // namespace zkasio
