// What it costs the servers that something is held, stands, or is followed, while nothing happens.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holding_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

constexpr auto session_time = 10s;
constexpr std::size_t session_times = 10;  // for so many of them the cost is measured

struct scene_of_holding {
    fake_ensemble& e;
    const client& zk;     // the session whose cost is measured
    const client& other;  // another one, whose locks are in the way
};
using kept = std::shared_ptr<const void>;
using kept_all = std::vector<kept>;

struct holding {
    std::string what;
    std::function<kept_all(const scene_of_holding&)> begin;
    bool is_held;                     // a write every T/4, and a read between two; or else a read every T/4
    std::size_t watches, ephemerals;  // at the servers, while nothing happens
};

template <class T>
kept keep(T value) {
    return std::make_shared<T>(std::move(value));
}
kept keep_running(fake_ensemble& e, asio::awaitable<void> task) {
    auto started = std::make_shared<running>(e.get_executor(), std::move(task));
    e.run_for(5s);
    return started;
}

asio::awaitable<void> wait_for_ever() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}
template <class Lock>
asio::awaitable<void> hold_for_ever(Lock lock) {
    const lock_guard guard = co_await lock.acquire();
    co_await wait_for_ever();
}
asio::awaitable<void> enter_for_ever(double_barrier into) {
    const barrier_entry entry = co_await into.enter();
    co_await wait_for_ever();
}
asio::awaitable<void> keep_partition(held_partition&) { co_await wait_for_ever(); }
asio::awaitable<void> run_partitions(partitioner of) { co_await of.run(&keep_partition); }
asio::awaitable<void> keep_delivery(delivery&) { co_await wait_for_ever(); }
asio::awaitable<void> consume_one_by_one(work_queue from) { co_await from.consume(&keep_delivery); }
asio::awaitable<void> read_leaders(std::shared_ptr<leader_observer> views) {
    for (;;) co_await views->next();
}

std::vector<holding> all_holdings() {
    using s = const scene_of_holding&;
    const auto of_lock = [](auto make) {
        return [make](s x) { return kept_all{keep_running(x.e, hold_for_ever(make(x.zk)))}; };
    };
    const auto behind_other = [](auto make) {
        return [make](s x) {
            return kept_all{keep_running(x.e, hold_for_ever(make(x.other))),
                            keep_running(x.e, hold_for_ever(make(x.zk)))};
        };
    };
    const auto plain = [](const client& zk) { return mutex(zk, "/m"); };
    const auto cohort = [](const client& zk) { return cohort_mutex(zk, "/m"); };
    const auto permit = [](const client& zk) { return semaphore(zk, "/s", permits::fixed(5)).request(); };
    const auto service = [](std::size_t i) {
        return service_instance("orders").id("i" + std::to_string(i)).address("10.0.0.1").port(80);
    };
    const auto ten_children = [](fake_ensemble& e) {
        for (int i = 0; i < 10; ++i) e.create("/r/" + std::to_string(i), "0123456789");
    };
    std::vector<holding> all;
    const auto add = [&](std::string what, bool is_held, std::size_t watches, std::size_t ephemerals, auto begin) {
        all.push_back({std::move(what), std::move(begin), is_held, watches, ephemerals});
    };

    add("nothing", false, 0, 0, [](s) { return kept_all(); });
    add("mutex", true, 1, 1, of_lock(plain));
    add("100 mutexes", true, 100, 100, [](s x) {
        kept_all all_kept;
        for (int i = 0; i < 100; ++i)
            all_kept.push_back(keep_running(x.e, hold_for_ever(mutex(x.zk, "/m" + std::to_string(i)))));
        return all_kept;
    });
    add("mutex, waiting", true, 2, 1, behind_other(plain));
    add("mutex, 100 coroutines", true, 2, 100, [plain](s x) {
        kept_all all_kept;
        for (int i = 0; i < 100; ++i) all_kept.push_back(keep_running(x.e, hold_for_ever(plain(x.zk))));
        return all_kept;
    });
    add("cohort_mutex", true, 2, 1, of_lock(cohort));
    add("cohort_mutex, 100 coroutines", true, 2, 1, [cohort](s x) {
        kept_all all_kept;
        for (int i = 0; i < 100; ++i) all_kept.push_back(keep_running(x.e, hold_for_ever(cohort(x.zk))));
        return all_kept;
    });
    add("unfair_mutex", true, 1, 1, of_lock([](const client& zk) { return unfair_mutex(zk, "/m"); }));
    add("shared_mutex, writer", true, 1, 1, of_lock([](const client& zk) { return shared_mutex(zk, "/m"); }));
    add("shared_mutex, reader", true, 1, 1, of_lock([](const client& zk) { return shared_mutex(zk, "/m").readers(); }));
    add("multi_mutex of three", true, 3, 3, of_lock([](const client& zk) {
            return multi_mutex(zk).add(mutex(zk, "/a")).add(mutex(zk, "/b")).add(mutex(zk, "/c"));
        }));
    add("semaphore, a permit", true, 1, 1, of_lock(permit));
    add("semaphore, five permits", true, 5, 5,
        of_lock([](const client& zk) { return semaphore(zk, "/s", permits::fixed(5)).request(5); }));
    add("slots, a number", true, 1, 1, of_lock([](const client& zk) { return slots(zk, "/n", 100); }));
    add("unfair_mutex, waiting", false, 1, 0,
        behind_other([](const client& zk) { return unfair_mutex(zk, "/m"); }));
    add("shared_mutex, a reader that waits", true, 2, 1, [](s x) {
        return kept_all{keep_running(x.e, hold_for_ever(shared_mutex(x.other, "/m"))),
                        keep_running(x.e, hold_for_ever(shared_mutex(x.zk, "/m").readers()))};
    });
    add("semaphore, waiting", true, 2, 2,
        behind_other([](const client& zk) { return semaphore(zk, "/s", permits::fixed(1)).request(); }));
    add("slots, waiting", false, 1, 0, behind_other([](const client& zk) { return slots(zk, "/n", 1); }));
    add("multi_mutex of three, waiting for the first", true, 2, 1, behind_other([](const client& zk) {
            return multi_mutex(zk).add(mutex(zk, "/a")).add(mutex(zk, "/b")).add(mutex(zk, "/c"));
        }));
    add("cohort_mutex, waiting", true, 2, 1, behind_other(cohort));
    add("candidate, leading", true, 1, 1, [](s x) {
        kept_all one{keep(candidate(x.zk, "/election"))};
        x.e.run_for(5s);
        return one;
    });
    add("candidate, standing", true, 2, 1, [](s x) {
        kept_all both{keep(candidate(x.other, "/election"))};
        x.e.run_for(5s);
        both.push_back(keep(candidate(x.zk, "/election")));
        x.e.run_for(5s);
        return both;
    });
    add("leader_observer", false, 2, 0, [](s x) {
        kept_all both{keep(candidate(x.other, "/election"))};
        x.e.run_for(5s);
        auto views = std::make_shared<leader_observer>(leader_election(x.zk, "/election").observe());
        both.push_back(keep_running(x.e, read_leaders(std::move(views))));
        return both;
    });
    add("persistent_node", false, 1, 1, [](s x) { return kept_all{keep(persistent_node(x.zk, "/p", "data"))}; });
    add("group_membership", false, 1, 1, [](s x) { return kept_all{keep(x.e.run(group(x.zk, "/group").join("me")))}; });
    add("group_observer, ten members", false, 1, 0, [ten_children](s x) {
        ten_children(x.e);
        return kept_all{keep(group(x.zk, "/r").observe())};
    });
    add("partitioner, four partitions", true, 6, 5, [](s x) {
        const std::vector<std::string> four{"a", "b", "c", "d"};
        kept_all one{keep_running(x.e, run_partitions(partitioner(x.zk, "/work", four)))};
        x.e.run_for(1min);
        return one;
    });
    add("announcement", false, 1, 1,
        [service](s x) { return kept_all{keep(x.e.run(registry(x.zk, "/base").announce(service(0))))}; });
    add("provider, ten instances", false, 1, 0, [service](s x) {
        for (std::size_t i = 0; i < 10; ++i) x.e.create("/base/orders/i" + std::to_string(i), service(i).to_json());
        return kept_all{keep(provider(x.zk, "/base", "orders"))};
    });
    add("node_cache", false, 1, 0, [](s x) { return kept_all{keep(node_cache(x.zk, "/r"))}; });
    add("children_cache, ten children", false, 1, 0, [ten_children](s x) {
        ten_children(x.e);
        return kept_all{keep(children_cache(x.zk, "/r"))};
    });
    add("tree_cache, ten children", false, 1, 0, [ten_children](s x) {
        ten_children(x.e);
        return kept_all{keep(tree_cache(x.zk, "/r"))};
    });
    add("work_queue, a consumer that waits", false, 2, 0,
        [](s x) { return kept_all{keep_running(x.e, consume_one_by_one(work_queue(x.zk, "/q")))}; });
    add("work_queue, an item in work", true, 1, 2, [](s x) {
        x.e.run(work_queue(x.other, "/q").put("job"));
        return kept_all{keep_running(x.e, consume_one_by_one(work_queue(x.zk, "/q")))};
    });
    add("double_barrier, inside", true, 1, 1,
        [](s x) { return kept_all{keep(x.e.run(double_barrier(x.zk, "/b", 1).enter()))}; });
    add("double_barrier, entering", false, 2, 1,
        [](s x) { return kept_all{keep_running(x.e, enter_for_ever(double_barrier(x.zk, "/b", 2)))}; });
    add("barrier, waiting", false, 1, 0, [](s x) {
        x.e.create("/gate");
        return kept_all{keep_running(x.e, barrier(x.zk, "/gate").wait())};
    });
    add("latch, waiting", false, 1, 0,
        [](s x) { return kept_all{keep_running(x.e, latch(x.zk, "/latch", 3).wait())}; });
    add("atomic_counter that was used", false, 0, 1, [](s x) {
        const atomic_counter counter(x.zk, "/n");
        for (int i = 0; i < 2; ++i) x.e.run(counter.add(1));  // the first one creates the node, without a receipt
        return kept_all{keep(counter)};
    });
    return all;
}

}  // namespace

// T is the session timeout. An idle session reads every T/4. One that holds something, however much, writes every T/4,
// with a check of nodes that it holds, and reads once between two writes.
TEST_CASE("cost of holding: a write every T/4 for a session, a read every T/4, and nothing else", "[numbers]") {
    for (const holding& h : all_holdings()) {
        fake_ensemble e;
        const auto sessions = client_options("fake").session_timeout(session_time);
        const client zk = e.client(sessions), other = e.client(sessions);
        e.run(zk.connected());
        e.run(other.connected());
        {
            const kept_all held = h.begin({e, zk, other});
            e.run_for(1min);
            std::size_t owned = 0;
            for (const std::string& path : e.paths()) owned += e.owns(zk, path);
            const testing::traffic before = e.traffic(zk);
            e.run_for(static_cast<int>(session_times) * session_time);
            const testing::traffic t = e.traffic(zk).since(before);
            INFO(h.what << ": " << t.requests << " requests, " << t.writes << " of them writes, " << t.listings
                        << " listings, " << t.bytes_in + t.bytes_out << " bytes, " << e.watches(zk) << " watches, "
                        << owned << " ephemerals");
            const std::size_t writes = h.is_held ? 4 * session_times : 0;
            const std::size_t reads = 4 * session_times;
            CHECK(t.writes <= writes + 1);
            CHECK(t.writes + 1 >= writes);
            CHECK(t.reads() <= reads + 1);
            CHECK(t.listings <= (h.what == "latch, waiting" ? session_times : 0));  // it counts again every T
            CHECK(t.bytes_in + t.bytes_out <= 60 * (reads + 1) + (writes + 1) * (80 + 120 * h.ephemerals));
            CHECK(t.events == 0);
            CHECK(e.watches(zk) == h.watches);
            CHECK(owned == h.ephemerals);
            e.cut(zk);
            e.run_for(1min);
            CHECK(e.watches(zk) == h.watches);
        }
        e.run(zk.close());
        e.run(other.close());
    }
}

TEST_CASE("cost of holding: by how often the lease is renewed, and by the number of nodes", "[numbers]") {
    struct law {
        lease_renewal often;
        std::size_t writes, reads;  // in T
    };
    for (const law& of : {law{lease_renewal::quarter, 4, 4}, law{lease_renewal::third, 3, 6},
                          law{lease_renewal::half, 2, 6}})
        for (const std::size_t n : {1U, 100U, 3000U}) {
            fake_ensemble e;
            const client zk =
                e.client(client_options("fake").session_timeout(session_time).lease_renewal(of.often));
            const session s = e.run(zk.current_session());
            std::vector<session_hold> holds;
            const auto hold_all = [&]() -> asio::awaitable<void> {
                for (std::size_t i = 0; i < n; ++i) {
                    const std::string path = "/n" + std::to_string(i) + std::string(40, 'x');
                    co_await s.create(path, bytes(), create_options().mode(create_mode::ephemeral));
                    holds.push_back(s.hold(path));
                }
            };
            e.run(hold_all());
            e.run_for(1min);
            const testing::traffic before = e.traffic(zk);
            e.run_for(static_cast<int>(session_times) * session_time);
            const testing::traffic t = e.traffic(zk).since(before);
            INFO(n << " nodes, renewed " << static_cast<int>(of.often) << " times in T: " << t.requests
                   << " requests, " << t.writes << " of them writes, " << t.bytes_in + t.bytes_out << " bytes");
            CHECK(t.writes <= of.writes * session_times + 1);
            CHECK(t.writes + 1 >= of.writes * session_times);
            CHECK(t.reads() <= of.reads * session_times + 1);
            // Of all nodes, as many are checked as fit into 4 kB.
            const std::size_t checked = std::min<std::size_t>(n, 60);
            CHECK(t.bytes_in + t.bytes_out <= 60 * (t.reads() + 1) + (t.writes + 1) * (80 + 120 * checked));
            for (const session_hold& h : holds) CHECK(h.held());
            e.remove("/n0" + std::string(40, 'x'));
            e.run_for(100ms);
            CHECK(holds.front().reason() == loss_reason::node_deleted);
            holds.clear();
            e.run(zk.close());
        }
}

// Other writes renew the lease. They also prove that nodes exist which are watched, on which a cohort relies.
TEST_CASE("cost of holding: a session that writes anyway writes nothing else", "[numbers]") {
    for (const auto often : {lease_renewal::quarter, lease_renewal::third, lease_renewal::half})
        for (const bool in_turns : {false, true}) {
            fake_ensemble e;
            const client zk = e.client(client_options("fake").session_timeout(session_time).lease_renewal(often));
            e.create("/n", "");
            const mutex plain(zk, "/plain");
            const cohort_mutex cohort(zk, "/cohort");
            const lock_guard guard = e.run(plain.acquire());
            const auto write = [&]() -> asio::awaitable<void> {
                asio::steady_timer timer(e.get_executor());
                for (;;) {
                    lock_guard turn;
                    if (in_turns) turn = co_await cohort.acquire();
                    timer.expires_after(session_time / 10);
                    co_await timer.async_wait(asio::use_awaitable);
                    co_await zk.set("/n", "");
                }
            };
            running writing(e.get_executor(), write()), waiting(e.get_executor(), write());  // keeps the place
            e.run_for(1min);
            const testing::traffic before = e.traffic(zk);
            const std::int32_t version = e.stat("/n")->version;
            e.run_for(static_cast<int>(session_times) * session_time);
            const testing::traffic t = e.traffic(zk).since(before);
            const auto own = static_cast<std::uint64_t>(e.stat("/n")->version - version);
            INFO(t.requests << " requests, " << t.writes << " writes, " << own << " of them asked for");
            CHECK(own >= 9 * session_times);
            CHECK(t.writes <= own + (in_turns ? session_times : 0));  // a cohort wants to be sure of its node
            CHECK(guard.held());
            writing.cancel();
            waiting.cancel();
            e.run(zk.close());
        }
}

TEST_CASE("cost of an idle session: a read every T/4, and every T/8 for 10 T after it has begun to hold something",
          "[numbers]") {
    fake_ensemble e;
    const client zk = e.client(client_options("fake").session_timeout(session_time));
    e.run(zk.connected());
    const auto requests_in = [&](std::chrono::seconds time) {
        const testing::traffic before = e.traffic(zk);
        e.run_for(time);
        return e.traffic(zk).since(before).requests;
    };
    const auto is_about = [](std::uint64_t n, std::uint64_t law) { return n <= law + 1 && n + 1 >= law; };
    CHECK(is_about(requests_in(10 * session_time), 40));
    e.run(mutex(zk, "/lock").with_lock([](lock_guard&) -> asio::awaitable<void> { co_return; }));
    CHECK(is_about(requests_in(9 * session_time), 72));
    e.run_for(2 * session_time);
    CHECK(is_about(requests_in(10 * session_time), 40));
    e.run(zk.close());
}

TEST_CASE("cost of another connection: a read for each watched node, and the watch again", "[numbers]") {
    for (const std::size_t n : {10U, 100U, 1000U, 3000U}) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        std::vector<watched<std::optional<node_stat>>> waits;
        e.run([&]() -> asio::awaitable<void> {
            for (std::size_t i = 0; i < n; ++i) {
                auto one = co_await all[0].exists_and_watch("/n" + std::to_string(i));
                waits.push_back(std::move(one));
            }
        });
        const cost again = cost_in_a_minute(e, [&] { e.cut(all[0]); });
        const cost changed = cost_in_a_minute(e, [&] {
            e.hold_down(all[0]);
            for (int i = 0; i < 10; ++i) e.create("/n" + std::to_string(i), "");
            e.run_for(1s);
            e.let_in(all[0]);
        });
        INFO(n << " watches, another connection: " << again << "; after ten changes: " << changed);
        CHECK(again.requests == n);
        CHECK(again.writes == 0);
        CHECK(again.listings == 0);
        CHECK(again.watches == 0);
        CHECK(changed.requests == n + 10);  // ten watches are removed, of which nobody has made use
        CHECK(changed.watches == -10);
        for (std::size_t i = 0; i < 10; ++i) {
            const watch_event event = e.run(waits[i].changes.changed());
            CHECK(event.what == node_change::created);
        }
        waits.clear();
        close_all(e, all);
    }
}

}  // namespace holding_cost_tests
