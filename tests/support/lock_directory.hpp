#pragma once

#include <zkasio/client.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace zkasio::test {

/// 0 when there is no such directory.
asio::awaitable<std::size_t> count_children(client zk, std::string path);

/// *Completes when* `n` contenders are in line, the holder included. Fails the test when that takes too long.
asio::awaitable<void> until_queued(client zk, std::string path, std::size_t n,
                                   std::chrono::seconds patience = std::chrono::seconds(20));

}  // namespace zkasio::test
