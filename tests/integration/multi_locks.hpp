#pragma once

#include "support/lock_checks.hpp"

#include <zkasio/locks/multi_mutex.hpp>

#include <string>

namespace zkasio::test {

/// dir/a, dir/b, dir/c; added in another order.
inline multi_mutex three(client zk, const std::string& dir) {
    multi_mutex all(zk);
    all.add(mutex(zk, dir + "/c")).add(mutex(zk, dir + "/a")).add(mutex(zk, dir + "/b"));
    return all;
}

inline asio::awaitable<void> until_free(client zk, std::string dir) {
    for (const char* name : {"/a", "/b", "/c"}) co_await until_queued(zk, dir + name, 0);
}

}  // namespace zkasio::test
