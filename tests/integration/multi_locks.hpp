#pragma once

#include "support/lock_checks.hpp"

#include <zkasio/locks/multi_mutex.hpp>

#include <string>

namespace zkasio::test {

inline multi_mutex_options one_by_one() {
    multi_mutex_options o;
    o.one_after_another();
    return o;
}

/// dir/a, dir/b, dir/c; added in another order.
inline multi_mutex three(client zk, const std::string& dir, multi_mutex_options how = multi_mutex_options()) {
    multi_mutex all(zk, how);
    all.add(mutex(zk, dir + "/c")).add(mutex(zk, dir + "/a")).add(mutex(zk, dir + "/b"));
    return all;
}

inline asio::awaitable<void> until_free(client zk, std::string dir) {
    for (const char* name : {"/a", "/b", "/c"}) co_await until_queued(zk, dir + name, 0);
}

}  // namespace zkasio::test
