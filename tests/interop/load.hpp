#pragma once

#include "interop/library.hpp"

#include <zkasio/locks/mutex.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace zkasio::test {

/// Load on one lock below `dir`, from two clients of ours and these peers: all do what `load` in peers/README.md does.
/// Returns the number of violations of mutual exclusion, and of first come, first served.
asio::awaitable<int> load_all(client zk, client second, std::string dir, std::vector<library> theirs,
                              mutex_options names = mutex_options());

/// As load_all(), with a cohort_mutex in both clients. A token of ours that is no larger than the last one of ours is a
/// violation as well.
asio::awaitable<int> load_cohorts(client zk, client second, std::string dir, std::vector<library> theirs);

/// One round inside, as a peer's: counts in the node `record`, as the owner of `node`. Returns whether somebody else
/// was inside, or has been before his turn.
/// @param turn the number of the turn under this node: after the first, the last owner has to be the same node.
asio::awaitable<bool> violates_record(client zk, std::string record, std::string node, std::uint64_t turn = 0);

}  // namespace zkasio::test
