// What many clients do at the same moment: how much, and how much of it in the same moment. To see the curves:
//
//     ZKASIO_HERD=1000 zkasio_testing_tests "[.herds]"
//
// prints a line of CSV for each kind of herd and number of clients.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
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
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace herd_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using zkasio::testing::fake_ensemble;

namespace {

using kept = std::shared_ptr<const void>;
using kept_all = std::vector<kept>;
using clients = std::vector<client>;

constexpr auto window = 10ms;

// What the servers have been asked from the beginning of a herd to its end.
struct herd {
    std::uint64_t connections = 0, requests = 0, writes = 0, listings = 0, bytes = 0;
    std::uint64_t most_in_window = 0, most_in_second = 0;  // handshakes and requests
    std::chrono::milliseconds until_quiet{0};

    friend std::ostream& operator<<(std::ostream& to, const herd& h) {
        return to << h.connections << " handshakes, " << h.requests << " requests, " << h.writes
                  << " of them writes, " << h.listings << " listings, " << h.bytes << " bytes; at most "
                  << h.most_in_window << " in 10 ms, " << h.most_in_second << " in a second; quiet after "
                  << h.until_quiet.count() << " ms";
    }
};

herd measure(fake_ensemble& e, const std::function<void()>& begin) {
    const testing::traffic before = e.traffic();
    std::vector<std::uint64_t> per_window;
    begin();
    std::uint64_t known = 0;
    herd h;
    for (std::chrono::milliseconds at{0}; at < 10s; at += window) {
        e.run_for(window);
        const testing::traffic t = e.traffic().since(before);
        const std::uint64_t all = t.connections + t.requests;
        per_window.push_back(all - std::exchange(known, all));
        if (per_window.back() != 0) h.until_quiet = at + window;
    }
    const testing::traffic t = e.traffic().since(before);
    h.connections = t.connections;
    h.requests = t.requests;
    h.writes = t.writes;
    h.listings = t.listings;
    h.bytes = t.bytes_in + t.bytes_out;
    constexpr auto in_second = static_cast<std::size_t>(1s / window);
    std::uint64_t second = 0;
    for (std::size_t i = 0; i < per_window.size(); ++i) {
        second += per_window[i];
        if (i >= in_second) second -= per_window[i - in_second];
        h.most_in_window = std::max(h.most_in_window, per_window[i]);
        h.most_in_second = std::max(h.most_in_second, second);
    }
    return h;
}

// ------------------------------------------------------------------------------------------------- kinds of herds

struct scene {
    fake_ensemble& e;
    clients& all;    // n of them, connected
    client& other;   // by which something happens
    kept_all& keep;  // until the end of the measurement
};

// How a figure grows with the number of clients.
struct law {
    double squared, each, others;
    bool is_exact;

    std::uint64_t at(std::size_t n) const {
        const auto x = static_cast<double>(n);
        return static_cast<std::uint64_t>(squared * x * x + each * x + others);
    }
    bool allows(std::uint64_t measured, std::size_t n) const {
        return is_exact ? measured == at(n) : measured <= at(n);
    }
    std::string words(std::size_t n) const { return (is_exact ? "" : "at most ") + std::to_string(at(n)); }
};
law exactly(double each, double others = 0) { return {0, each, others, true}; }
law at_most(double each, double others = 0) { return {0, each, others, false}; }
law at_most_squared(double squared, double each) { return {squared, each, 0, false}; }
const law none = exactly(0);

struct kind {
    std::string name;
    std::function<void(const scene&)> prepare;
    std::function<void(const scene&)> happen;
    law requests;  // and handshakes
    law writes, listings, bytes;
};

template <class T>
kept keep(T value) {
    return std::make_shared<T>(std::move(value));
}

asio::awaitable<void> wait_for_ever() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}
template <class Lock>
asio::awaitable<void> hold(Lock lock) {
    const lock_guard guard = co_await lock.acquire();
    co_await wait_for_ever();
}
asio::awaitable<void> enter(double_barrier b) {
    const barrier_entry inside = co_await b.enter();
    co_await wait_for_ever();
}
asio::awaitable<void> join(group g, std::string name) {
    const group_membership member = co_await g.join(std::move(name));
    co_await wait_for_ever();
}
asio::awaitable<void> announce(registry r, service_instance what) {
    const announcement one = co_await r.announce(std::move(what));
    co_await wait_for_ever();
}
asio::awaitable<void> keep_delivery(delivery&) { co_await wait_for_ever(); }
asio::awaitable<void> consume(work_queue from) { co_await from.consume(&keep_delivery); }
asio::awaitable<void> count_down(client zk) { co_await latch(zk, "/latch", 1).count_down("other"); }
asio::awaitable<void> read_leaders(std::shared_ptr<leader_observer> views) {
    for (;;) co_await views->next();
}

// Cancelled when it is no longer kept.
void begin(const scene& s, asio::awaitable<void> task) {
    const auto end = [](running* one) {
        one->cancel();
        delete one;
    };
    s.keep.push_back(std::shared_ptr<running>(new running(s.e.get_executor(), std::move(task)), end));
}

// All clients do the same: at once, or one after another.
using user = std::function<asio::awaitable<void>(const client&, std::size_t)>;
std::function<void(const scene&)> at_once(user what) {
    return [what = std::move(what)](const scene& s) {
        for (std::size_t i = 0; i < s.all.size(); ++i) begin(s, what(s.all[i], i));
    };
}
std::function<void(const scene&)> after_other(user what, user first) {
    return [what = std::move(what), first = std::move(first)](const scene& s) {
        begin(s, first(s.other, 0));
        s.e.run_for(10s);
        at_once(what)(s);
    };
}
void other_ends(const scene& s) { s.keep.front().reset(); }  // what the other one holds goes with its coroutine
// A client whose connection is lost connects again without a pause, and so do all: nothing spreads this herd.
void all_are_cut(const scene& s) {
    for (const client& zk : s.all) s.e.cut(zk);
}

service_instance instance(std::size_t i) {
    return service_instance("orders").id("i" + std::to_string(i)).address("10.0.0.1").port(80);
}

std::vector<kind> all_kinds() {
    const auto one_mutex = [](const client& zk, std::size_t) { return hold(mutex(zk, "/lock")); };
    const auto own_mutex = [](const client& zk, std::size_t i) {
        return hold(mutex(zk, "/locks/" + std::to_string(i)));
    };
    const auto unfair = [](const client& zk, std::size_t) { return hold(unfair_mutex(zk, "/flag")); };
    const auto permit = [](const client& zk, std::size_t) {
        return hold(semaphore(zk, "/pool", permits::fixed(1)).request());
    };
    const auto writer = [](const client& zk, std::size_t) { return hold(shared_mutex(zk, "/table")); };
    const auto reader = [](const client& zk, std::size_t) { return hold(shared_mutex(zk, "/table").readers()); };
    const auto number = [](const client& zk, std::size_t) { return hold(slots(zk, "/numbers", 1)); };
    const auto member = [](const client& zk, std::size_t i) { return join(group(zk, "/group"), std::to_string(i)); };
    const auto announces = [](const client& zk, std::size_t i) {
        return announce(registry(zk, "/base"), instance(i));
    };
    const auto gate = [](const client& zk, std::size_t) { return barrier(zk, "/gate").wait(); };
    const auto count = [](const client& zk, std::size_t) { return latch(zk, "/latch", 1).wait(); };
    const auto item = [](const client& zk, std::size_t) { return consume(work_queue(zk, "/queue")); };
    const auto directories = [](const scene& s) {
        for (const char* path : {"/lock", "/locks", "/group", "/base/orders", "/numbers", "/queue"}) s.e.create(path);
    };
    const auto node_caches = [](const scene& s) {
        s.e.create("/node", "1");
        for (const client& zk : s.all) s.keep.push_back(keep(node_cache(zk, "/node")));
    };
    const auto children_caches = [](const scene& s) {
        for (int i = 0; i < 10; ++i) s.e.create("/nodes/" + std::to_string(i), "1");
        for (const client& zk : s.all) s.keep.push_back(keep(children_cache(zk, "/nodes")));
    };
    const auto fleet = [=](const scene& s) {
        directories(s);
        node_caches(s);
        children_caches(s);
        at_once(own_mutex)(s);
        at_once(member)(s);
    };

    std::vector<kind> all;
    all.push_back({"deploy: a lock for all", directories, at_once(one_mutex), at_most(4, 10), exactly(1), exactly(1),
                   at_most_squared(60, 1000)});
    all.push_back({"deploy: a lock each", directories, at_once(own_mutex), at_most(6, 5), exactly(3), exactly(2),
                   at_most(1100)});
    all.push_back({"deploy: members of a group", directories, at_once(member), at_most(2.5, 5), exactly(1), none,
                   at_most(400)});
    all.push_back({"deploy: instances of a service", directories, at_once(announces), at_most(2.5, 5), exactly(1), none,
                   at_most(600)});
    all.push_back({"deploy: a provider each", [](const scene& s) {
        for (std::size_t i = 0; i < 100; ++i) s.e.create("/base/orders/i" + std::to_string(i), instance(i).to_json());
    }, [](const scene& s) {
        for (const client& zk : s.all) s.keep.push_back(keep(provider(zk, "/base", "orders")));
    }, at_most(10, 5), none, exactly(1), at_most(37'000)});
    all.push_back({"connections are lost: a lock, a member and two caches each", fleet, all_are_cut,
                   at_most(8.5, 5), none, exactly(1), at_most(2300)});
    all.push_back({"a leader dies: candidates", [](const scene& s) {
        s.keep.push_back(keep(candidate(s.other, "/election")));
        s.e.run_for(10s);
        for (const client& zk : s.all) s.keep.push_back(keep(candidate(zk, "/election")));
    }, [](const scene& s) { s.e.expire(s.other); }, at_most(0, 7), exactly(0, 1), exactly(0, 1), at_most(75, 1500)});
    all.push_back({"a leader dies: observers", [](const scene& s) {
        s.keep.push_back(keep(candidate(s.other, "/election")));
        s.e.run_for(10s);
        for (const client& zk : s.all)
            begin(s, read_leaders(std::make_shared<leader_observer>(leader_election(zk, "/election").observe())));
        s.keep.push_back(keep(candidate(s.all.front(), "/election")));
    }, [](const scene& s) { s.e.expire(s.other); }, at_most(5, 10), exactly(0, 1), exactly(1, 1), at_most(850, 1300)});
    all.push_back({"an item arrives", at_once(item), [](const scene& s) {
        begin(s, work_queue(s.other, "/queue").put("job"));
    }, at_most(5, 40), at_most(1, 20), at_most(3.5, 10), at_most(1050, 8000)});
    all.push_back({"a barrier opens", [gate](const scene& s) {
        s.e.create("/gate");
        at_once(gate)(s);
    }, [](const scene& s) { s.e.remove("/gate"); }, at_most(5), none, none, at_most(330)});
    all.push_back({"a latch opens", at_once(count), [](const scene& s) { begin(s, count_down(s.other)); },
                   at_most(3.7, 6), exactly(0, 4), exactly(0, 1), at_most(370, 1000)});
    all.push_back({"the last one enters a double_barrier", [](const scene& s) {
        const std::size_t n = s.all.size() + 1;
        at_once([n](const client& zk, std::size_t) { return enter(double_barrier(zk, "/b", n)); })(s);
    }, [](const scene& s) { begin(s, enter(double_barrier(s.other, "/b", s.all.size() + 1))); }, at_most(10, 12),
                   exactly(0, 2), exactly(1, 1), at_most_squared(55, 1500)});
    all.push_back({"a mutex is released", after_other(one_mutex, one_mutex), other_ends, at_most(0, 2),
                   exactly(0, 1), none, at_most(0, 600)});
    all.push_back({"an unfair_mutex is released", after_other(unfair, unfair), other_ends, at_most(2.5, 5),
                   exactly(1, 1), none, at_most(330, 300)});
    all.push_back({"a permit is released", after_other(permit, permit), other_ends, at_most(0, 8), exactly(0, 3),
                   exactly(0, 2), at_most(0, 1800)});
    all.push_back({"a writer leaves: readers", after_other(reader, writer), other_ends, at_most(1.25, 3),
                   exactly(0, 1), exactly(1), at_most_squared(80, 500)});
    all.push_back({"a number of slots is released", after_other(number, number), other_ends, at_most(1.75, 14),
                   at_most(0.1, 20), at_most(1.5, 5), at_most(280, 1700)});
    all.push_back({"a node changes that all follow", node_caches, [](const scene& s) { s.e.set("/node", "2"); },
                   at_most(1, 2), none, none, at_most(210)});
    all.push_back({"a child comes to a directory that all follow", children_caches,
                   [](const scene& s) { s.e.create("/nodes/new", "1"); }, at_most(1, 2), none, none, at_most(220)});
    return all;
}

herd of(const kind& k, std::size_t n) {
    fake_ensemble e;
    e.step_time(1us);  // the servers are not what limits the rate
    clients all = connected_clients(e, n);
    client other = e.client(rare_heartbeats(e));
    e.run(other.connected());
    kept_all keep;
    const scene s{e, all, other, keep};
    k.prepare(s);
    e.run_for(30s);
    const herd h = measure(e, [&] { k.happen(s); });
    keep.clear();
    e.run(other.close());
    for (client& zk : all) e.run(zk.close());
    return h;
}

}  // namespace

TEST_CASE("herds: what n clients cost that do something at the same moment", "[numbers][herds]") {
    for (const kind& k : all_kinds())
        for (const std::size_t n : {std::size_t{10}, std::size_t{100}}) {
            const herd h = of(k, n);
            INFO(k.name << ", " << n << " clients: " << h);
            const auto compare = [n](const char* what, std::uint64_t measured, const law& by) {
                INFO(what << ": " << by.words(n) << ", measured " << measured);
                CHECK(by.allows(measured, n));
            };
            compare("requests and handshakes", h.connections + h.requests, k.requests);
            compare("writes", h.writes, k.writes);
            compare("listings", h.listings, k.listings);
            compare("bytes", h.bytes, k.bytes);
        }
}

TEST_CASE("herds: curves", "[.herds]") {
    const char* const text = std::getenv("ZKASIO_HERD");
    const std::size_t most = text ? std::strtoul(text, nullptr, 10) : 100;
    std::cout << "herd,clients,handshakes,requests,writes,listings,bytes,most in 10 ms,most in 1 s,quiet after ms\n";
    for (const kind& k : all_kinds())
        for (std::size_t n = 10; n <= most; n *= 10) {
            const herd h = of(k, n);
            std::cout << k.name << ',' << n << ',' << h.connections << ',' << h.requests << ',' << h.writes << ','
                      << h.listings << ',' << h.bytes << ',' << h.most_in_window << ',' << h.most_in_second << ','
                      << h.until_quiet.count() << std::endl;
        }
}

}  // namespace herd_tests
