// What members, partitions and services cost the servers: laws, compared at different numbers of them.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace membership_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

std::int64_t as_count(std::size_t n) { return static_cast<std::int64_t>(n); }

asio::awaitable<void> work_until_cancelled(held_partition&) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

asio::awaitable<void> working(partitioner p) { co_await p.run(&work_until_cancelled); }

asio::awaitable<void> observing(std::shared_ptr<group_observer> members) {
    for (;;) co_await members->next();
}

}  // namespace

TEST_CASE("cost of n persistent nodes: a create and a watch each, and nothing while they stand", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        e.create("/r");
        std::vector<client> all = connected_clients(e, n);
        std::deque<persistent_node> nodes;
        const cost made = cost_in_a_minute(e, [&] {
            for (std::size_t i = 0; i < n; ++i) nodes.emplace_back(all[i], "/r/" + std::to_string(i), "0123456789");
        });
        const cost idle = cost_in_a_minute(e, [&] { e.run_for(1h); });
        const cost left = cost_in_a_minute(e, [&] { nodes.clear(); });
        INFO(n << " nodes, made: " << made << "; idle: " << idle << "; left: " << left);
        CHECK(made.writes == n);
        CHECK(made.requests == 2 * n);
        CHECK(made.bytes <= 350 * n);
        CHECK(made.watches == as_count(n));
        CHECK(made.ephemerals == as_count(n));
        CHECK(idle.requests == 0);
        CHECK(left.writes == n);
        CHECK(left.bytes <= 350 * n);
        CHECK(left.requests <= 4 * n);  // sync(), a look, the removal, and the removal of the watch
        CHECK(left.watches == -as_count(n));
        CHECK(left.ephemerals == -as_count(n));
    }
}

TEST_CASE("cost of a persistent node with a time to live: a read and a write in half of that time", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{100}}) {
        fake_ensemble e;
        e.create("/r");
        std::vector<client> all = connected_clients(e, n);
        std::deque<persistent_node> nodes;
        persistent_node_options how;
        how.mode(create_mode::persistent_ttl).ttl(10min);
        for (std::size_t i = 0; i < n; ++i) nodes.emplace_back(all[i], "/r/" + std::to_string(i), "x", how);
        e.run_for(1min);
        const cost idle = cost_in_a_minute(e, [&] { e.run_for(1h); });
        INFO(n << " nodes: " << idle);
        CHECK(idle.writes <= n * 13);  // each fires the keeper's watch, and other clients' watches
        CHECK(idle.requests <= n * 3 * 13);
        CHECK(idle.bytes <= n * 6000);
        nodes.clear();
        e.run_for(1min);
    }
}

// All members observe the group. A change reaches each of them, so n members that come one after another cost n²/2
// listings; members that come at the same time are one change for those who have not read yet. 1000 members would be
// half a million listings of 1000 names.
TEST_CASE("cost of a group of n members who observe it", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{50}}) {
        fake_ensemble e;
        e.create("/r");
        std::vector<client> all = connected_clients(e, n);
        std::vector<std::shared_ptr<group_observer>> observers;
        std::vector<std::unique_ptr<running>> readers;
        std::vector<group_membership> members;
        const cost observed = cost_in_a_minute(e, [&] {
            for (const client& zk : all) {
                observers.push_back(std::make_shared<group_observer>(group(zk, "/r").observe()));
                readers.push_back(std::make_unique<running>(zk.get_executor(), observing(observers.back())));
            }
        });
        const cost joined = cost_in_a_minute(e, [&] {
            for (std::size_t i = 0; i < n; ++i)
                members.push_back(e.run(group(all[i], "/r").join("m" + std::to_string(i))));
        });
        const cost one_left = cost_in_a_minute(e, [&] { members.pop_back(); });
        INFO(n << " members, observed: " << observed << "; joined: " << joined << "; one has left: " << one_left);
        CHECK(observed.requests <= 3 * n);
        CHECK(joined.writes == n);
        CHECK(joined.listings == 0);
        CHECK(joined.requests <= n * n + 4 * n);  // the new member's data, by each
        CHECK(joined.ephemerals == as_count(n));
        CHECK(joined.watches == as_count(n));  // each has one for its own node, beside that of the group
        CHECK(joined.bytes <= 180 * n * n + 3000);
        CHECK(one_left.listings == 0);
        CHECK(one_left.requests <= 6);
        CHECK(one_left.bytes <= 50 * n + 500);
        close_all(e, all);
    }
}

// n members with 4 partitions each come at the same time. As in a group, each of n members reads n nodes.
TEST_CASE("cost of a partitioner of n members", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{50}}) {
        fake_ensemble e;
        std::vector<std::string> partitions;
        for (std::size_t p = 0; p < 4 * n; ++p) partitions.push_back("p" + std::to_string(p));
        std::vector<client> all = connected_clients(e, n);
        std::vector<std::unique_ptr<running>> members;
        const cost come = cost_in_a_minute(e, [&] {
            for (std::size_t i = 0; i < n; ++i)
                members.push_back(std::make_unique<running>(
                    e.get_executor(),
                    working(partitioner(all[i], "/r", partitions, partitioner_options().id("m" + std::to_string(i))))));
        });
        const cost idle = cost_in_a_minute(e, [&] { e.run_for(1h); });
        const cost one_gone = cost_in_a_minute(e, [&] { e.run(all.back().close()); });
        INFO(n << " members, come: " << come << "; idle: " << idle << "; one has gone: " << one_gone);
        CHECK(come.ephemerals == as_count(n + 4 * n));
        // A member; and for each of its partitions the lock, its directory, and the create that finds none.
        CHECK(come.writes <= n + 3 * 4 * n + n + 30);
        CHECK(come.listings <= 6 * n + 2 * 4 * n);
        CHECK(come.requests <= 40 * n + 50);
        CHECK(come.bytes <= 300 * n * n + 7000 * n);  // each reads all members, many in one request
        CHECK(come.watches <= as_count(6 * n));
        CHECK(idle.requests == 0);
        CHECK(one_gone.writes <= 20 + n / 2);
        CHECK(one_gone.requests <= 3 * n + 60);
        CHECK(one_gone.bytes <= 600 * n + 6000);
        close_all(e, all);
        for (const auto& m : members) e.run(m->code());
    }
}

}  // namespace membership_cost_tests
