// What a program does over and over with zkasio takes no more and more memory: a table that only grows is no leak to a
// sanitizer. With real servers, since those in memory keep what was written.

#include "support/catch.hpp"
#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/queues/delivery.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>

using namespace zkasio;
using namespace zkasio::test;

namespace {
namespace memory_slope {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool heap_is_known = false;  // sanitizers have one of their own
#else
constexpr bool heap_is_known = true;
#endif

struct world {
    client zk, other;
    fault_proxy& network;  // of `zk`
    std::string dir;
    int round = 0;

    // Another path in each round.
    std::string at(const char* name) const { return dir + name + std::to_string(round); }
    std::string cached() const { return dir + "/cached"; }
};

template <class T>
asio::awaitable<void> attempt(asio::awaitable<T> what) {
    [[maybe_unused]] const result<T> end = co_await as_result(std::move(what));
}

// Two clients want the lock, and one of them gives up waiting. Locks are remade each time, as programs do.
template <class Lock, class... Args>
asio::awaitable<void> contend(world& w, const char* path, Args... args) {
    const Lock ours(w.zk, w.at(path), args...), theirs(w.other, w.at(path), args...);
    {
        lock_guard guard = co_await ours.acquire();
        co_await attempt(theirs.try_acquire());
        co_await attempt(theirs.try_acquire_for(1ms));
        co_await guard.release();
    }
    lock_guard guard = co_await theirs.acquire();
    co_await guard.release();
}

asio::awaitable<void> read_and_write(world& w) {
    const shared_mutex ours(w.zk, w.at("/shared")), theirs(w.other, w.at("/shared"));
    lock_guard reading = co_await ours.acquire_shared();
    co_await attempt(theirs.try_acquire());
    co_await reading.release();
    lock_guard writing = co_await theirs.acquire();
    lock_guard downgraded = co_await theirs.downgrade(std::move(writing));
    co_await downgraded.release();
}

asio::awaitable<void> several_at_once(world& w) {
    multi_mutex both(w.zk);
    both.add(mutex(w.zk, w.at("/a"))).add(mutex(w.zk, w.at("/b")));
    lock_guard guard = co_await both.acquire();
    co_await guard.release();
}

asio::awaitable<void> lose(world& w) {
    const mutex lock(w.zk, w.at("/lock"));
    const lock_guard guard = co_await lock.acquire();
    co_await expire_session(w.zk);
    co_await guard.lost();
    co_await w.zk.connected();
}

asio::awaitable<void> be_cut(world& w) {
    const mutex lock(w.zk, w.at("/lock"));
    lock_guard guard = co_await lock.acquire();
    w.network.cut_all();
    co_await attempt(w.zk.exists(w.dir));
    co_await guard.release();
}

asio::awaitable<void> campaign(world& w) {
    const leader_election ours(w.zk, w.at("/election")), theirs(w.other, w.at("/election"));
    leadership leader = co_await ours.campaign();
    co_await attempt(theirs.try_campaign());
    co_await leader.resign();
}

asio::awaitable<void> stand_and_close(world& w) {
    const candidate one(w.zk, w.at("/election"));
    while (!one.leads()) co_await one.next();
    co_await one.close();
}

asio::awaitable<void> enter_and_leave(double_barrier barrier) {
    barrier_entry inside = co_await barrier.enter();
    co_await inside.leave();
}

asio::awaitable<void> meet(world& w) {
    const double_barrier ours(w.zk, w.at("/double"), 2), theirs(w.other, w.at("/double"), 2);
    const running together(co_await asio::this_coro::executor, enter_and_leave(theirs));
    co_await enter_and_leave(ours);
    co_await together.end();
}

asio::awaitable<void> set_and_remove_barrier(world& w) {
    const barrier ours(w.zk, w.at("/barrier")), theirs(w.other, w.at("/barrier"));
    co_await ours.set();
    const running waits(co_await asio::this_coro::executor, theirs.wait());
    co_await ours.remove();
    co_await waits.end();
}

asio::awaitable<void> count(world& w) {
    const atomic_counter ours(w.zk, w.at("/counter")), theirs(w.other, w.at("/counter"));
    co_await ours.add(1);
    co_await theirs.add(1);
}

asio::awaitable<void> allocate(world& w) { co_await id_allocator(w.zk, w.at("/ids")).next(); }

asio::awaitable<void> put_and_take(world& w) {
    const work_queue ours(w.zk, w.at("/queue")), theirs(w.other, w.at("/queue"));
    co_await ours.put("first");
    co_await ours.put("second");
    co_await theirs.take();
    const delivery got = co_await theirs.receive();
    co_await got.done();
}

asio::awaitable<void> join_and_leave(world& w) {
    const group ours(w.zk, w.at("/group"));
    const group_observer observer(w.other, w.at("/group"));
    co_await observer.ready();
    const group_membership member = co_await ours.join("one", "data");
    co_await observer.next();
    co_await member.set_data("changed");
    co_await member.leave();
}

asio::awaitable<void> keep_a_node(world& w) {
    const persistent_node node(w.zk, w.at("/kept"), "data");
    co_await node.created();
    co_await w.other.remove(w.at("/kept"));
    auto is_back = [&]() -> asio::awaitable<bool> { co_return (co_await w.other.exists(w.at("/kept"))).has_value(); };
    co_await eventually(is_back);
    co_await node.leave();
}

template <class Cache>
asio::awaitable<void> open_and_close(world& w) {
    const Cache cache(w.zk, w.cached());
    co_await cache.ready();
    co_await cache.close();
}

// A cache that lives on while nodes come and go.
asio::awaitable<void> come_and_go(world& w) {
    co_await w.other.create(w.cached() + "/child", "data");
    co_await w.other.set(w.cached() + "/child", "more");
    co_await w.other.remove(w.cached() + "/child");
}

asio::awaitable<void> set_config(world& w) {
    const config_value<std::string> value(
        w.zk, w.at("/config"),
        config_format<std::string>([](std::string_view text) { return std::string(text); },
                                   [](const std::string& text) { return text; }));
    co_await value.set("text");
    co_await value.close();
}

asio::awaitable<void> announce_and_pick(world& w) {
    const registry services(w.zk, w.at("/services"));
    service_instance is("orders");
    is.address("10.0.0.1");
    const announcement one = co_await services.announce(is);
    const provider orders(w.other, w.at("/services"), "orders");
    co_await attempt(orders.pick());
    co_await orders.close();
    co_await one.withdraw();
}

asio::awaitable<void> watch_and_forget(world& w) {
    co_await w.zk.create(w.at("/watched"));
    const auto seen = co_await w.zk.get_and_watch(w.at("/watched"));
    co_await w.other.remove(w.at("/watched"));
    co_await attempt(w.zk.get(w.at("/watched")));
}

asio::awaitable<void> connect_and_close(world&) {
    const test_client one(co_await asio::this_coro::executor, options());
    co_await one.connected();
    co_await one.close();
}

struct repeated {
    const char* what;
    std::function<asio::awaitable<void>(world&)> once;
    int times = 200;
};

std::vector<repeated> everything() {
    return {
        {"mutex", [](world& w) { return contend<mutex>(w, "/mutex"); }},
        {"cohort_mutex",
         [](world& w) { return contend<cohort_mutex>(w, "/cohort", cohort_mutex_options().linger(0s)); }},
        {"unfair_mutex", [](world& w) { return contend<unfair_mutex>(w, "/unfair"); }},
        {"semaphore", [](world& w) { return contend<semaphore>(w, "/semaphore", permits::fixed(1)); }},
        {"shared_mutex", read_and_write},
        {"multi_mutex", several_at_once},
        {"a session that expires", lose, 70},
        {"a connection that is cut", be_cut, 70},
        {"leader_election", campaign},
        {"candidate", stand_and_close},
        {"double_barrier", meet},
        {"barrier", set_and_remove_barrier},
        {"atomic_counter", count},
        {"id_allocator", allocate},
        {"work_queue", put_and_take},
        {"group", join_and_leave},
        {"persistent_node", keep_a_node},
        {"node_cache", open_and_close<node_cache>},
        {"children_cache", open_and_close<children_cache>},
        {"tree_cache", open_and_close<tree_cache>},
        {"a tree_cache whose nodes come and go", come_and_go},
        {"config_value", set_config},
        {"registry and provider", announce_and_pick},
        {"a watch", watch_and_forget},
        {"client", connect_and_close},
    };
}

asio::awaitable<void> repeat(world& w, const repeated& one, int times) {
    for (int i = 0; i < times; ++i, ++w.round) co_await one.once(w);
}

// When the clients have done what they do in the background.
asio::awaitable<double> bytes_in_use(const world& w) {
    co_await w.zk.idle();
    co_await w.other.idle();
    const struct mallinfo2 heap = ::mallinfo2();
    co_return static_cast<double>(heap.uordblks + heap.hblkhd);
}

// Less than this is no slope: tables are swept when they have doubled, so what is in use goes up and down.
constexpr double least_slope = 80;

// In bytes each time. The longer it is measured, the less counts what goes up and down.
asio::awaitable<double> slope(world& w, const repeated& one) {
    co_await repeat(w, one, one.times);  // tables and free lists reach their size
    const double before = co_await bytes_in_use(w);
    double bytes_each = 1e9;
    for (int times = one.times; times <= 4 * one.times && bytes_each > least_slope; times += one.times) {
        co_await repeat(w, one, one.times);
        bytes_each = (co_await bytes_in_use(w) - before) / times;
    }
    co_return bytes_each;
}

}  // namespace memory_slope
}  // namespace

TEST_CASE("memory: what is repeated takes no more and more of it", "[real-server]") {
    if (!memory_slope::heap_is_known) {
        WARN("SKIPPED: a sanitizer has a heap of its own");
        return;
    }
    const std::vector<memory_slope::repeated> all = memory_slope::everything();
    fault_proxy network(first_server());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const test_client other(co_await asio::this_coro::executor, options());
        const std::string dir = co_await fresh_directory(other, "memory_slope");
        memory_slope::world w{zk, other, network, dir, 0};
        co_await other.create(w.cached());
        const tree_cache lasting(zk, w.cached());
        co_await lasting.ready();
        for (const memory_slope::repeated& one : all) {
            const double bytes_each = co_await memory_slope::slope(w, one);
            INFO(one.what << ": " << bytes_each << " bytes each time");
            CHECK(bytes_each < memory_slope::least_slope);
        }
        co_await lasting.close();
        co_await other.close();
    };
    with_client_for(600s, options(network.address()), body);
}
