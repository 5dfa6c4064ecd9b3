// What n processes do to the servers that all do the same at the same moment: real clients and servers in memory, in
// virtual time, on one thread. Nothing is installed, and no machine's speed is in the figures.
//
//     zkasio_bench_scale [most processes] [one of the names in main()]
//
// A client takes two descriptors, so there are at most as many as the process may have files, less some, by two.
// The servers take one step in 0.1 ms: a request, an answer, or an event that a client is told. So "s" is the time
// until the last answer, in tenths of a second, where an ensemble takes 10 000 steps a second, and "busiest s" is how
// many requests are sent in the busiest second. "unfair" is, of a lock, how many turns the others had, on average, while
// one process waited for its turn, in the worst case (first come, first served: 1); of partitions, the difference
// between the most and the least that one has; of a queue, what the busiest consumer has had, compared with the mean.
// Heartbeats are left out: docs/cost.md has their law.

#include "descriptors.hpp"
#include "figure.hpp"

#include <zkasio/client.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

using asio::awaitable;
using zkasio::client;
using zkasio::testing::fake_ensemble;
using namespace std::chrono_literals;

constexpr auto slice = 100ms;

// Servers, and n clients of theirs, connected.
class scene {
public:
    explicit scene(std::size_t n) {
        e.session_timeouts(1s, 20h);  // so that no heartbeat is among what is counted
        for (std::size_t i = 0; i < n; ++i)
            clients.push_back(
                e.client(zkasio::client_options("fake").session_timeout(20h).connection_timeout(20h).log(nullptr)));
        for (const client& zk : clients) e.run(zk.connected());
    }
    ~scene() {
        for (const auto& one : tasks_) one->cancel.emit(asio::cancellation_type::terminal);
        e.run_for(10s);
        clients.clear();
    }
    scene(const scene&) = delete;
    scene& operator=(const scene&) = delete;

    /// A task that may never end.
    void spawn(awaitable<void> task) {
        tasks_.push_back(std::make_unique<background>());
        asio::co_spawn(e.get_executor(), std::move(task),
                       asio::bind_cancellation_slot(tasks_.back()->cancel.slot(), [](std::exception_ptr) {}));
    }

    fake_ensemble e;
    std::deque<client> clients;

private:
    struct background {
        asio::cancellation_signal cancel;
    };
    std::vector<std::unique_ptr<background>> tasks_;
};

// Does `what`, waits until `is_done`, and then until nothing is said for ten seconds, and prints what it has cost.
void measure(scene& s, const std::string& row, std::size_t n, const std::function<void()>& what,
             const std::function<bool()>& is_done, const std::function<double()>& unfair = nullptr) {
    using seconds = std::chrono::duration<double>;
    const auto begin = s.e.now();
    const zkasio::testing::traffic before = s.e.traffic();
    zkasio::testing::traffic last = before;
    double busiest = 0, until_last = 0;
    std::deque<double> second;  // requests in the slices of the last second
    what();
    int quiet = 0;
    for (int slices = 0; quiet < 100; ++slices) {
        if (slices == 36000) throw std::runtime_error(row + " is not done within an hour");
        s.e.run_for(slice);
        const zkasio::testing::traffic now = s.e.traffic(), since = now.since(last);
        last = now;
        second.push_back(static_cast<double>(since.requests));
        if (second.size() > std::size_t{1s / slice}) second.pop_front();
        busiest = std::max(busiest, std::accumulate(second.begin(), second.end(), 0.0));
        quiet = since.bytes_in + since.bytes_out > 0 ? 0 : quiet + 1;
        if (quiet == 0) until_last = seconds(s.e.now() - begin).count();
        if (quiet == 100 && !is_done()) quiet = 99;
    }
    const zkasio::testing::traffic all = last.since(before);
    const auto users = static_cast<double>(n);
    const std::string name = row + " | " + std::to_string(n) + " | ";
    figure(name + "requests", static_cast<double>(all.requests) / users);
    figure(name + "writes", static_cast<double>(all.writes) / users);
    figure(name + "bytes", static_cast<double>(all.bytes_in + all.bytes_out) / users);
    figure(name + "s", until_last);
    figure(name + "busiest s", busiest);
    std::printf("  %-46s %6zu: %9.1f requests, %7.1f writes, %10.0f bytes for each, %8.1f s, busiest s: %6.0f",
                row.c_str(), n, static_cast<double>(all.requests) / users, static_cast<double>(all.writes) / users,
                static_cast<double>(all.bytes_in + all.bytes_out) / users, until_last, busiest);
    if (unfair) std::printf(", unfair: %.2f", unfair());
    std::printf("\n");
    if (unfair) figure(name + "unfair", unfair());
    std::fflush(stdout);
}

awaitable<void> rest() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

// ------------------------------------------------------------------------------------------------------ locks

struct turns {
    std::size_t all = 0, done = 0;  // turns; processes that have had their three
    std::size_t most_passed = 0;    // turns of others during one wait
};

template <class Lock>
awaitable<void> take_turns(Lock lock, turns& t) {
    for (int k = 0; k < 3; ++k) {
        const std::size_t before = t.all;
        zkasio::lock_guard guard = co_await lock.acquire();
        t.most_passed = std::max(t.most_passed, t.all++ - before);
        co_await guard.release();
    }
    ++t.done;
}

template <class Make>
void measure_lock(const std::string& kind, std::size_t n, const std::string& node, Make make) {
    turns t;
    scene s(n);
    s.e.create(node);
    const auto begin = [&] {
        for (const client& zk : s.clients) s.spawn(take_turns(make(zk), t));
    };
    measure(
        s, kind + ": three turns each", n, begin, [&] { return t.done == n; },
        [&] { return static_cast<double>(t.most_passed) / static_cast<double>(n - 1); });
}

// -------------------------------------------------------------------------------------------------- elections

void measure_election(std::size_t n) {
    scene s(n);
    s.e.create("/election");
    std::deque<zkasio::candidate> standing;
    const auto leader = [&] {
        return std::find_if(standing.begin(), standing.end(), [](const zkasio::candidate& c) { return c.leads(); });
    };
    measure(
        s, "election: all stand", n,
        [&] {
            for (const client& zk : s.clients) standing.emplace_back(zk, "/election");
        },
        [&] { return leader() != standing.end() && s.e.children("/election").size() == n; });
    const auto first = leader() - standing.begin();
    measure(
        s, "election: the leader's session ends", n, [&] { s.e.expire(s.clients[static_cast<std::size_t>(first)]); },
        [&] { return leader() != standing.end() && leader() - standing.begin() != first; });
    standing.clear();
    s.e.run_for(10s);
}

// ------------------------------------------------------------------------------------ groups and providers

awaitable<void> join(zkasio::group to, std::string id, std::deque<zkasio::group_membership>& members) {
    zkasio::group_membership member = co_await to.join(std::move(id));
    members.push_back(std::move(member));
}

void measure_group(std::size_t n) {
    scene s(n);
    s.e.create("/group");
    std::deque<zkasio::group_observer> observers;
    std::deque<zkasio::group_membership> members;
    const auto all_see = [&](std::size_t number) {
        return std::all_of(observers.begin(), observers.end(), [&](const zkasio::group_observer& o) {
            const zkasio::group_view seen = o.members();
            return seen.current && seen.members.size() == number;
        });
    };
    measure(
        s, "group: all join, and observe it", n,
        [&] {
            for (std::size_t i = 0; i < n; ++i) {
                observers.push_back(zkasio::group(s.clients[i], "/group").observe());
                s.spawn(join(zkasio::group(s.clients[i], "/group"), "m" + std::to_string(i), members));
            }
        },
        [&] { return members.size() == n && all_see(n); });
    const auto leave = [&] { s.e.expire(s.clients.back()); };
    measure(s, "group: one expires, and comes back", n, leave, [&] { return all_see(n); });
    measure(
        s, "group: all connections break", n,
        [&] {
            for (const client& zk : s.clients) s.e.cut(zk);
        },
        [&] { return all_see(n); });
    members.clear();
    observers.clear();
}

zkasio::service_instance numbered_instance(std::size_t i) {
    return zkasio::service_instance("orders").id("i" + std::to_string(i)).address("10.0.0.1").port(80);
}

awaitable<void> announce(zkasio::registry at, std::size_t i, std::deque<zkasio::announcement>& announced) {
    zkasio::announcement one = co_await at.announce(numbered_instance(i));
    announced.push_back(std::move(one));
}

void measure_provider(std::size_t n) {
    scene s(n);
    s.e.create("/base/orders");
    std::deque<zkasio::provider> providers;
    std::deque<zkasio::announcement> announced;
    const auto all_see = [&](std::size_t number) {
        return std::all_of(providers.begin(), providers.end(), [&](const zkasio::provider& p) {
            const zkasio::service_view seen = p.view();
            return seen.current() && seen.instances().size() == number;
        });
    };
    measure(
        s, "provider: all announce, and follow", n,
        [&] {
            for (std::size_t i = 0; i < n; ++i) {
                providers.emplace_back(s.clients[i], "/base", "orders");
                s.spawn(announce(zkasio::registry(s.clients[i], "/base"), i, announced));
            }
        },
        [&] { return announced.size() == n && all_see(n); });
    measure(
        s, "provider: all connections break", n,
        [&] {
            for (const client& zk : s.clients) s.e.cut(zk);
        },
        [&] { return all_see(n); });
    announced.clear();
    providers.clear();
}

// ------------------------------------------------------------------------------------------------ partitioner

using counts = std::vector<std::size_t>;

std::size_t sum(const counts& all) {
    std::size_t n = 0;
    for (const std::size_t one : all) n += one;
    return n;
}

class one_more {
public:
    explicit one_more(std::size_t& of) : of_(of) { ++of_; }
    ~one_more() { --of_; }
    one_more(const one_more&) = delete;
    one_more& operator=(const one_more&) = delete;

private:
    std::size_t& of_;
};

awaitable<void> run_partitions(zkasio::partitioner p, std::size_t& held) {
    auto body = [&held](zkasio::held_partition&) -> awaitable<void> {
        const one_more counted(held);
        co_await rest();
    };
    co_await p.run(body);
}

void measure_partitioner(std::size_t n) {
    counts held(n);
    scene s(n);
    std::vector<std::string> partitions;
    for (std::size_t p = 0; p < 4 * n; ++p) partitions.push_back("p" + std::to_string(p));
    const auto unfair = [&] {
        const auto [least, most] = std::minmax_element(held.begin(), held.end());
        return static_cast<double>(*most - *least);
    };
    measure(
        s, "partitioner: all come", n,
        [&] {
            for (std::size_t i = 0; i < n; ++i) {
                const auto how = zkasio::partitioner_options().id("m" + std::to_string(i));
                s.spawn(run_partitions(zkasio::partitioner(s.clients[i], "/work", partitions, how), held[i]));
            }
        },
        [&] { return sum(held) == 4 * n; }, unfair);
    measure(
        s, "partitioner: one goes", n, [&] { s.e.run(s.clients.back().close()); },
        [&] { return held.back() == 0 && sum(held) == 4 * n; });
}

// ------------------------------------------------------------------------------------------------------ queue

awaitable<void> consume(zkasio::work_queue from, std::size_t& done) {
    auto body = [&done](zkasio::delivery&) -> awaitable<void> {
        asio::steady_timer work(co_await asio::this_coro::executor, 10ms);
        co_await work.async_wait(asio::use_awaitable);
        ++done;
    };
    co_await from.consume(body);
}

void measure_queue(std::size_t n) {
    counts done(n);
    scene s(n);
    const zkasio::work_queue q(s.clients.front(), "/q");
    s.e.run(q.create());
    for (std::size_t i = 0; i < n; ++i) s.spawn(consume(zkasio::work_queue(s.clients[i], "/q"), done[i]));
    s.e.run_for(1min);
    const std::vector<std::string> items(4 * n, "x");
    measure(
        s, "queue: four items for each consumer", n, [&] { s.e.run(q.put_all(items)); },
        [&] { return sum(done) == items.size(); },
        [&] { return static_cast<double>(*std::max_element(done.begin(), done.end())) / 4; });
    const auto one = [&] { s.e.run(q.put("x")); };
    measure(s, "queue: one item, all wait", n, one, [&] { return sum(done) == items.size() + 1; });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    using namespace bench;
    const std::size_t possible = raise_descriptor_limit() / 2 - 50;
    const std::size_t most = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
    const std::string only = argc > 2 ? argv[2] : "";
    const std::pair<std::string, std::function<void(std::size_t)>> all[] = {
        {"mutex",
         [](std::size_t n) {
             measure_lock("mutex", n, "/lock", [](const client& zk) { return zkasio::mutex(zk, "/lock"); });
         }},
        {"cohort_mutex",
         [](std::size_t n) {
             measure_lock("cohort_mutex", n, "/lock",
                          [](const client& zk) { return zkasio::cohort_mutex(zk, "/lock"); });
         }},
        {"shared_mutex",
         [](std::size_t n) {
             measure_lock("shared_mutex, writers", n, "/lock",
                          [](const client& zk) { return zkasio::shared_mutex(zk, "/lock"); });
         }},
        {"semaphore",
         [](std::size_t n) {
             measure_lock("semaphore of three", n, "/pool", [](const client& zk) {
                 return zkasio::semaphore(zk, "/pool", zkasio::permits::fixed(3)).request();
             });
         }},
        {"unfair_mutex",
         [](std::size_t n) {  // n² requests
             if (n > 100) return;
             measure_lock("unfair_mutex", n, "/locks",  // the lock is a node itself
                          [](const client& zk) { return zkasio::unfair_mutex(zk, "/locks/a"); });
         }},
        {"election", measure_election},
        {"group", measure_group},
        {"provider", measure_provider},
        {"partitioner", measure_partitioner},
        {"queue", measure_queue},
    };
    try {
        for (const auto& [name, run] : all)
            for (const std::size_t n : {10U, 30U, 100U, 300U, 1000U, 3000U, 10000U})
                if (n <= most && (only.empty() || only == name)) run(std::min(n, possible));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
