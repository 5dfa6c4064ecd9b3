#pragma once

#include <zkasio/recipes/mutex.hpp>

#include <memory>
#include <string>

namespace zkasio::test {

/// What the peers do at `load` (peers/README.md), done by us: `rounds` times under `lock`, with the node `record`.
/// Counts the violations of mutual exclusion and of first come, first served.
asio::awaitable<void> load(client zk, mutex lock, int rounds, std::string record, std::shared_ptr<int> violations);

/// Creates `record`.
asio::awaitable<void> start_record(client zk, std::string record);

/// How many times it was written.
asio::awaitable<int> recorded(client zk, std::string record);

}  // namespace zkasio::test
