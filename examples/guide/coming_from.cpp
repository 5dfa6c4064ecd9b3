// docs/coming-from.md: zkasio's side. The sides of Curator and kazoo are in others/.
#include "guide.hpp"

#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/membership/group.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

namespace coming_from_page {
namespace {

void work(const std::string& what) { std::cout << "zkasio: " << what << "\n"; }

// [connect]
zkasio::client connect(asio::io_context& io, std::string servers) {
    zkasio::client_options options(servers);
    options.session_timeout(10s).retry(zkasio::retry_policy::exponential(50ms, 2s, 8));  // of reads
    return zkasio::client(io, options);                                                  // connects in the background
}
// [/connect]

// [lock]
asio::awaitable<bool> lock(zkasio::client zk) {
    const zkasio::mutex lock(zk, "/guide/shared-lock");
    const auto guard = co_await lock.try_acquire_for(5s);
    if (!guard) co_return false;
    work("under the lock");
    co_return true;
}  // released
// [/lock]

// [lock_kazoo]
// The same lock as kazoo's, by kazoo's names of nodes.
zkasio::mutex kazoo_lock(zkasio::client zk) {
    zkasio::mutex_options as_kazoo;
    as_kazoo.names(zkasio::name_scheme::kazoo()).data("host-7");
    return zkasio::mutex(zk, "/guide/kazoo-lock", as_kazoo);
}
// [/lock_kazoo]

// [readers]
asio::awaitable<void> readers(zkasio::client zk) {
    const zkasio::shared_mutex prices(zk, "/guide/shared-prices");
    const zkasio::lock_guard guard = co_await prices.acquire_shared();
    work("as a reader");
}
// [/readers]

// [semaphore]
asio::awaitable<void> permit(zkasio::client zk) {
    const zkasio::semaphore pool(zk, "/guide/shared-pool", zkasio::permits::fixed(3));
    const zkasio::lock_guard guard = co_await pool.acquire();
    work("with one of three permits");
}
// [/semaphore]

// [several]
asio::awaitable<void> several(zkasio::client zk) {
    zkasio::multi_mutex both(zk);
    both.add(zkasio::mutex(zk, "/guide/account-a")).add(zkasio::mutex(zk, "/guide/account-b"));
    const zkasio::lock_guard guard = co_await both.acquire();
    work("with both accounts");
}
// [/several]

// [election]
asio::awaitable<void> lead(zkasio::client zk) {
    zkasio::leader_election_options me;
    me.id("host-7");
    const zkasio::leader_election election(zk, "/guide/shared-leader", me);
    auto body = [](zkasio::leadership&) -> asio::awaitable<void> {
        work("as the leader");  // its waits are cancelled when the leadership is lost
        co_return;
    };
    co_await election.lead(body);
}
// [/election]

// [group]
asio::awaitable<void> join(zkasio::client zk) {
    const zkasio::group servers(zk, "/guide/shared-group");
    const zkasio::group_membership member = co_await servers.join("zkasio-7", "10.0.0.7:80");
    const zkasio::group_view there = co_await servers.members();
    work("one of " + std::to_string(there.members.size()));
}  // leaves
// [/group]

// [cache]
asio::awaitable<void> cache(zkasio::client zk) {
    const zkasio::tree_cache prices(zk, "/guide/shared-tree");
    co_await prices.ready();
    const zkasio::cached_node node = prices.snapshot().find("/guide/shared-tree");  // on any thread
    if (node) work(node.data());

    const zkasio::value_stream states = zkasio::watch_value(zk, "/guide/shared-tree");
    const auto newest = co_await states.next();  // now, and then after each change
    if (newest) work(newest->data);
}
// [/cache]

asio::awaitable<void> in_coroutines(zkasio::client zk) {
    co_await zk.create_or_set("/guide/shared-tree", "tea 350", zkasio::with_parents());
    const bool locked = co_await lock(zk);
    expect(locked, "the lock was free");
    {
        const zkasio::lock_guard guard = co_await kazoo_lock(zk).acquire();
        expect(guard.path().find("__lock__") != std::string::npos, "the node has kazoo's name");
    }
    co_await readers(zk);
    co_await permit(zk);
    co_await several(zk);
    co_await lead(zk);
    co_await join(zk);
    co_await cache(zk);
    co_await zk.close();
}

}  // namespace
}  // namespace coming_from_page

void guide_coming_from(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, coming_from_page::in_coroutines(coming_from_page::connect(io, servers)), rethrow);
    io.run();
}
