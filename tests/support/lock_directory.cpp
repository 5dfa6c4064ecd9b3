#include "support/lock_directory.hpp"

#include "support/test_client.hpp"

namespace zkasio::test {

asio::awaitable<std::size_t> count_children(client zk, std::string path) {
    std::size_t n = 0;
    try {
        const node_children list = co_await zk.children(path);
        n = list.names.size();
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return n;
}

asio::awaitable<void> until_queued(client zk, std::string path, std::size_t n, std::chrono::seconds patience) {
    auto queued = [&]() -> asio::awaitable<bool> {
        const std::size_t now = co_await count_children(zk, path);
        co_return now == n;
    };
    co_await eventually(queued, patience);
}

}  // namespace zkasio::test
