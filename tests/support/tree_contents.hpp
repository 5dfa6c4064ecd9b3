#pragma once

#include <zkasio/cache/tree_view.hpp>
#include <zkasio/client.hpp>

#include <asio/awaitable.hpp>

#include <map>
#include <string>

namespace zkasio::test {

/// The data of each node of a tree, by path.
using tree_contents = std::map<std::string, std::string>;

tree_contents contents_of(const tree_view& view);

/// What the servers say, node by node. Without those that go meanwhile.
asio::awaitable<tree_contents> fresh_listing(client zk, std::string path);

}  // namespace zkasio::test
