#pragma once

#include <zkasio/client.hpp>
#include <zkasio/recipes/detail/lock_queue.hpp>
#include <zkasio/recipes/lock_claim.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace zkasio::recipes::detail {

/// A queue to enter, see contend().
struct entry {
    std::string directory;
    queue_names names;
    wish what;
    asio::any_io_executor strand;  ///< of the client
};

/// Enters several queues in one transaction and waits until all locks are ours. Empty: refused. Otherwise the token of the
/// locks is the same.
struct claims_together {
    std::vector<std::shared_ptr<lock_claim>> claims;
    std::int64_t token = 0;
};
asio::awaitable<claims_together> contend_together(client zk, std::vector<entry> entries);

}  // namespace zkasio::recipes::detail
