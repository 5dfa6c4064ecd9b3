#pragma once

#include "interop/library.hpp"

#include <zkasio/locks/lockable.hpp>
#include <zkasio/locks/mutex.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::test {

/// Our side of a load: the lock of a client, and how many nodes the coroutines of one client have in the queue.
struct our_locks {
    std::function<std::unique_ptr<lockable>(client zk, std::string path)> make;
    std::size_t nodes_of_client;
};
constexpr int tasks_of_client = 3;
our_locks our_mutexes(mutex_options names = mutex_options());

/// Load on one lock below `dir`, from two clients of ours and these peers: all do what `load` in peers/README.md does.
/// Returns the number of violations of mutual exclusion, and of first come, first served.
asio::awaitable<int> load_all(client zk, client second, std::string dir, std::vector<library> theirs,
                              our_locks ours = our_mutexes());

/// One round inside, as a peer's: counts in the node `record`, as the owner of `node`. Returns whether
/// another owner was inside, or an owner of a later node has been.
asio::awaitable<bool> violates_record(client zk, std::string record, std::string node);

}  // namespace zkasio::test
