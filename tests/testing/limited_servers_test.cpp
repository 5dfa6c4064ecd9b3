// Recipes over servers that do not know all requests: known_requests, in detail/seam.

#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using testing::fake_ensemble;

namespace {

client_options noted(std::vector<std::string>& lines) {
    const auto sink = [&lines](std::string_view line) { lines.emplace_back(line); };
    return client_options("zk").session_timeout(10s).log(sink, log_level::warning);
}

std::size_t lines_with(const std::vector<std::string>& lines, std::string_view part) {
    std::size_t n = 0;
    for (const std::string& line : lines) n += line.find(part) != std::string::npos ? 1 : 0;
    return n;
}

// As 3.4; or as ClickHouse Keeper.
void limit(fake_ensemble& e, bool zookeepers) {
    e.know_multi_read(false);
    e.know_create2(false);
    e.know_watch_removal(false);
    e.know_containers(!zookeepers);  // they would hang up
    e.are_zookeepers(zookeepers);
}

struct recipe {
    std::string name;
    std::function<asio::awaitable<void>(client)> run;
};

template <class Lock>
asio::awaitable<void> acquire(Lock lock) {
    const lock_guard guard = co_await lock.acquire();
    CHECK(guard.token().value() > 0);
    co_await guard.commit(transaction().create("/done").remove("/done"));
}

std::vector<recipe> recipes() {
    return {
        {"mutex", [](client zk) { return acquire(mutex(zk, "/l/m")); }},
        {"shared_mutex", [](client zk) { return acquire(shared_mutex(zk, "/l/w")); }},
        {"semaphore", [](client zk) { return acquire(semaphore(zk, "/l/s", permits::fixed(2))); }},
        {"unfair_mutex",
         [](client zk) -> asio::awaitable<void> {
             const unfair_mutex lock(zk, "/l/u");
             const lock_guard guard = co_await lock.acquire();
             CHECK(guard.held());
         }},
        {"cohort_mutex", [](client zk) { return acquire(cohort_mutex(zk, "/l/h")); }},
        {"slots",
         [](client zk) -> asio::awaitable<void> {
             const slots numbers(zk, "/l/n", 3);
             const lock_guard guard = co_await numbers.acquire();
             CHECK(guard.held());
         }},
        {"election",
         [](client zk) -> asio::awaitable<void> {
             const leader_election election(zk, "/l/e");
             const leadership leads = co_await election.campaign();
             CHECK(leads.token().value() > 0);
         }},
        {"group",
         [](client zk) -> asio::awaitable<void> {
             const group members(zk, "/l/g");
             const auto joined = co_await members.join("one");
         }},
        {"double_barrier",
         [](client zk) -> asio::awaitable<void> {
             const double_barrier gate(zk, "/l/gate", 1);
             const barrier_entry in = co_await gate.enter();
         }},
        {"counter",
         [](client zk) -> asio::awaitable<void> {
             const atomic_counter counter(zk, "/l/counter");
             const auto added = co_await counter.add(1);
             static_cast<void>(added);
         }},
        {"work_queue",
         [](client zk) -> asio::awaitable<void> {
             const work_queue queue(zk, "/l/q");
             co_await queue.put("job");
             delivery job = co_await queue.receive();
             CHECK(job.item() == "job");
             co_await job.done();
         }},
        {"tree_cache",
         [](client zk) -> asio::awaitable<void> {
             co_await zk.create("/l/tree/a", "1", with_parents());
             const tree_cache cache(zk, "/l/tree");
             co_await cache.ready();
             CHECK(cache.snapshot().find("/l/tree/a").data() == "1");
             co_await cache.close();
         }},
    };
}

}  // namespace

TEST_CASE("limited servers: each recipe works, at the price of few connections, and the log says why", "[testing]") {
    const bool zookeepers = GENERATE(true, false);
    for (const auto& [name, run] : recipes()) {
        INFO(name << (zookeepers ? ", servers of 3.4" : ", servers that are not ZooKeeper's"));
        fake_ensemble e;
        limit(e, zookeepers);
        e.create("/l");
        std::vector<std::string> lines;
        client zk = e.client(noted(lines));
        e.run([&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const auto before = e.traffic(zk).connections;
            // A create that is lost with its connection fails if nothing can tell whether it was applied.
            for (int attempt = 0;; ++attempt) {
                std::error_code code;
                try {
                    co_await timeout(1min, run(zk));
                } catch (const error& lost) {
                    if (attempt == 3 || lost.code() != condition::retryable) throw;
                    code = lost.code();
                }
                if (!code) break;
            }
            const auto after = e.traffic(zk).connections;
            CHECK(after - before <= (zookeepers ? 5 : 0));
            if (name != "tree_cache") co_await timeout(1min, run(zk));
            CHECK(e.traffic(zk).connections <= after);
            co_await zk.close();
        }, 5min);
        const std::string stats = "nodes are created with one more read each";
        CHECK(lines_with(lines, zookeepers ? "create2 (15): " + stats : "ZooKeeper's own: ") == 1);
        CHECK(lines_with(lines, stats) == 1);
        CHECK(lines_with(lines, "removeWatches (18)") <= 1);
    }
}

TEST_CASE("limited servers: n coroutines cost no more connections than one", "[testing][numbers]") {
    const bool zookeepers = GENERATE(true, false);
    for (const int n : {1, 100}) {
        INFO(n << (zookeepers ? " coroutines, servers of 3.4" : " coroutines, servers that are not ZooKeeper's"));
        fake_ensemble e;
        limit(e, zookeepers);
        e.create("/l");
        std::vector<std::string> lines;
        client zk = e.client(noted(lines));
        e.run([&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const auto before = e.traffic(zk).connections;
            const auto lock_one = [&zk](int i) -> asio::awaitable<void> {
                const mutex lock(zk, "/l/m" + std::to_string(i));
                for (int k = 0; k < 3; ++k) {
                    const lock_guard guard = co_await lock.acquire();
                    const mutex same(zk, "/l/m" + std::to_string(i));
                    const auto none = co_await same.try_acquire_for(10ms);
                    CHECK_FALSE(none);
                }
            };
            auto all = [&](task_scope& tasks) -> asio::awaitable<void> {
                for (int i = 0; i < n; ++i) tasks.spawn(lock_one(i));
                co_return;
            };
            co_await with_task_scope(all);
            CHECK(e.traffic(zk).connections - before <= (zookeepers ? 4 : 0));
            co_await zk.close();
        }, 10min);
    }
}

TEST_CASE("limited servers: a watch that nobody needs any more costs one connection, whatever their number",
          "[testing]") {
    fake_ensemble e;
    e.know_watch_removal(false);
    for (int i = 0; i < 20; ++i) e.create("/n" + std::to_string(i));
    std::vector<std::string> lines;
    client zk = e.client(noted(lines));
    e.run([&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const auto before = e.traffic(zk).connections;
        for (int i = 0; i < 20; ++i) {
            const auto seen = co_await zk.get_and_watch("/n" + std::to_string(i));
        }
        co_await zk.get("/n0");
        CHECK(e.traffic(zk).connections - before <= 1);
        co_await zk.close();
    });
    CHECK(lines_with(lines, "does not know the request removeWatches (18)") == 1);
}

TEST_CASE("limited servers: a container that the caller wants is refused, and parents are persistent", "[testing]") {
    fake_ensemble e;
    e.are_zookeepers(false);
    client zk = e.client(client_options("zk").session_timeout(10s).log(nullptr));
    e.run([&]() -> asio::awaitable<void> {
        co_await zk.connected();
        create_options below;
        below.parents(missing_parents::create_container);
        co_await zk.create("/p/q/r", "", below);
        std::error_code code;
        try {
            co_await zk.create("/c", "", create_options().mode(create_mode::container));
        } catch (const error& refused) {
            code = refused.code();
        }
        CHECK(code == zk_errc::unimplemented);
        co_await zk.remove("/p/q/r");
        co_await zk.close();
    });
    e.run_for(10min);
    CHECK(e.exists("/p/q"));  // nobody removes it
}

TEST_CASE("limited servers: with all requests tried, two connections are lost at a container, and then none",
          "[testing]") {
    fake_ensemble e;
    e.are_zookeepers(false);
    e.know_containers(false);
    std::vector<std::string> lines;
    client zk = e.client(noted(lines).try_all_requests());
    e.run([&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const auto before = e.traffic(zk).connections;
        const mutex lock(zk, "/l/m");
        for (int i = 0; i < 2; ++i) {
            const lock_guard guard = co_await lock.acquire();
            CHECK(e.traffic(zk).connections - before == 2);
        }
        co_await zk.close();
    }, 5min);
    CHECK(lines_with(lines, "createContainer (19): directories are persistent nodes") == 1);
}
