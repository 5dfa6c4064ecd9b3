#include <zkasio/recipe/if_exists.hpp>

namespace zkasio {

asio::awaitable<std::vector<std::string>> children_if_any(operations on, std::string path) {
    std::optional<node_children> found = co_await if_exists(on.children(std::move(path)));
    std::vector<std::string> names;
    if (found) names = std::move(found->names);
    co_return names;
}

asio::awaitable<bool> has_children(pending_data exists) {
    try {
        const node_data found = co_await exists.result();
        co_return found.stat.num_children > 0;
    } catch (const error&) {
        co_return false;
    }
}

}  // namespace zkasio
