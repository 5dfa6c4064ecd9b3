// Clients of servers that do not know all requests, and how often these hang up: see support/limited_server.hpp.

#include "support/limited_server.hpp"
#include "support/opcode.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

struct counts {
    std::size_t hang_ups = 0, connections = 0;
};

// Of n coroutines with a lock each, in missing directories, which they acquire and leave as waiters, beside a cache.
counts cost_of(const std::string& kind, int n, client_options how = options()) {
    const limited_server server(first_server(), limits::of(kind));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = "/test-limited-" + std::to_string(n);
        const tree_cache cache(zk, dir);
        const auto lock_one = [&zk, &dir](int i) -> asio::awaitable<void> {
            const mutex lock(zk, dir + "/m" + std::to_string(i));
            for (int locked = 0, attempts = 0; locked < 3;) {
                try {
                    const lock_guard guard = co_await lock.acquire();
                    CHECK(guard.token().value() > 0);
                    const mutex same(zk, lock.path());
                    const auto none = co_await same.try_acquire_for(10ms);
                    CHECK_FALSE(none);
                    ++locked;
                } catch (const error& e) {  // the session may end with the connection
                    if (++attempts > 10) throw;
                    const bool is_lost = e.code() == condition::retryable || e.code() == condition::session_ended ||
                                         e.code() == errc::lock_lost;
                    if (!is_lost) throw;
                }
            }
        };
        auto all = [&](task_scope& tasks) -> asio::awaitable<void> {
            for (int i = 0; i < n; ++i) tasks.spawn(lock_one(i));
            co_return;
        };
        co_await with_task_scope(all);
        co_await cache.ready();
        CHECK(cache.snapshot().names(dir).size() == static_cast<std::size_t>(n));
        co_await cache.close();
    };
    with_client(how.servers(server.address()), body);
    counts c{server.hang_ups(), server.connections()};
    UNSCOPED_INFO(kind << ", " << n << " coroutines: " << server.report());
    return c;
}

}  // namespace

TEST_CASE("limited servers: how often they hang up does not depend on the number of coroutines", "[real-server]") {
    for (const int n : {1, 50}) {
        const counts old = cost_of("zookeeper-3.4", n), newer = cost_of("zookeeper-3.5", n);
        CHECK(old.hang_ups <= 3);  // at the watch of the cache, and a create: ahead of its turn, and then alone
        CHECK(old.connections <= 4);
        CHECK(newer.hang_ups <= 2);
        CHECK(newer.connections <= 3);
    }
}

TEST_CASE("limited servers: ClickHouse Keeper is recognized, and loses no session", "[real-server]") {
    for (const std::string kind : {"keeper-25.11", "keeper-26.3", "worst"})
        for (const int n : {1, 50}) {
            const counts c = cost_of(kind, n);
            CHECK(c.hang_ups == 0);
            CHECK(c.connections == 1);
        }
}

TEST_CASE("limited servers: with all requests tried, Keeper hangs up twice at each that it does not know",
          "[real-server]") {
    for (const int n : {1, 50}) {
        const counts c = cost_of("worst", n, options().try_all_requests());
        CHECK(c.hang_ups <= 12);  // of create2, addWatch, removeWatches, createContainer, multiRead
        const counts newer = cost_of("keeper-26.3", n, options().try_all_requests());
        CHECK(newer.hang_ups <= 2);
    }
}
