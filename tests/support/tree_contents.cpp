#include "support/tree_contents.hpp"

namespace zkasio::test {

tree_contents contents_of(const tree_view& view) {
    tree_contents all;
    view.for_each([&](const std::string& path, const cached_node& node) { all[path] = node.data(); });
    return all;
}

asio::awaitable<tree_contents> fresh_listing(client zk, std::string path) {
    tree_contents all;
    try {
        const node_data node = co_await zk.get(path);
        all[path] = node.data;
        const node_children children = co_await zk.children(path);
        for (const std::string& name : children.names) {
            const tree_contents below = co_await fresh_listing(zk, path + "/" + name);
            all.insert(below.begin(), below.end());
        }
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return all;
}

}  // namespace zkasio::test
