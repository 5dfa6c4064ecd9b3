// What an election with n candidates, and with n observers, costs the servers.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace elections_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

std::size_t leader_of(const std::vector<candidate>& standing) {
    REQUIRE(std::count_if(standing.begin(), standing.end(), [](const candidate& c) { return c.leads(); }) == 1);
    const auto it = std::find_if(standing.begin(), standing.end(), [](const candidate& c) { return c.leads(); });
    return static_cast<std::size_t>(it - standing.begin());
}

asio::awaitable<void> observe(std::shared_ptr<leader_observer> views, std::shared_ptr<std::size_t> told) {
    for (;;) {
        co_await views->next();
        ++*told;
    }
}

}  // namespace

TEST_CASE("cost of an election: a change of leader costs the same for 10 and 200 candidates", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/election");
        std::vector<candidate> standing;
        const cost stood = cost_in_a_minute(e, [&] {
            for (const client& zk : all) standing.emplace_back(zk, "/election");
        });
        const std::size_t first = leader_of(standing);
        const cost stepped = cost_in_a_minute(e, [&] { e.run(standing[first].step_down()); });
        const std::size_t second = leader_of(standing);
        const cost expired = cost_in_a_minute(e, [&] { e.expire(all[second]); });
        const std::size_t third = leader_of(standing);
        const cost idle = cost_in_a_minute(e, [&] { e.run_for(1h); });
        INFO(n << " candidates stand: " << stood);
        INFO("the leader steps down: " << stepped);
        INFO("the leader's session ends: " << expired);
        CHECK(first != second);
        CHECK(second != third);
        CHECK(stood.writes == n);  // a node each
        CHECK(stood.ephemerals == static_cast<std::int64_t>(n));
        CHECK(stood.listings == n);
        CHECK(stood.requests <= 3 * n + 10);
        CHECK(stood.bytes <= 50 * n * n + 1000 * n);  // each listing has all names
        // Each watches its predecessor's node; the first five, all nodes ahead and their own.
        CHECK(stood.watches <= static_cast<std::int64_t>(n + 10));
        for (const cost& changed : {stepped, expired}) {
            CHECK(changed.writes <= 2);  // the leader's node goes, and it has another one at the end of the queue
            CHECK(changed.listings <= 2);
            CHECK(changed.requests <= 6);
            CHECK(changed.bytes <= 65 * n + 1500);  // a listing
            CHECK(changed.ephemerals == 0);
            CHECK(changed.watches <= 1);
        }
        CHECK(idle.requests == 0);
        standing.clear();
        close_all(e, all);
    }
}

TEST_CASE("cost of an election: each of n observers reads a new leader once, and nothing of other candidates",
          "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n + 3);
        e.create("/election");
        std::vector<candidate> standing;
        for (std::size_t i = n; i < n + 2; ++i) standing.emplace_back(all[i], "/election");
        e.run_for(1min);
        const auto told = std::make_shared<std::size_t>(0);
        std::vector<std::unique_ptr<running>> readers;
        const cost began = cost_in_a_minute(e, [&] {
            for (std::size_t i = 0; i < n; ++i) {
                auto views = std::make_shared<leader_observer>(leader_election(all[i], "/election").observe());
                readers.push_back(std::make_unique<running>(e.get_executor(), observe(std::move(views), told)));
            }
        });
        CHECK(*told == n);
        const cost joined = cost_in_a_minute(e, [&] { standing.emplace_back(all[n + 2], "/election"); });
        CHECK(*told == n);
        const cost changed = cost_in_a_minute(e, [&] { e.run(standing[leader_of(standing)].step_down()); });
        INFO(n << " observers begin: " << began);
        INFO("a candidate more: " << joined);
        INFO("another leader: " << changed);
        CHECK(*told >= 2 * n);
        CHECK(began.writes == 0);
        CHECK(began.listings <= n);
        CHECK(began.requests <= 4 * n);
        CHECK(began.bytes <= 700 * n);  // with the names of two candidates
        CHECK(began.watches <= static_cast<std::int64_t>(2 * n));
        CHECK(joined.requests <= 10);
        CHECK(changed.writes <= 3);
        CHECK(changed.listings <= n + 4);
        CHECK(changed.requests <= 4 * n + 20);
        CHECK(changed.bytes <= 800 * n + 2000);
        CHECK(changed.watches <= 1);
        for (const auto& r : readers) r->cancel();
        for (const auto& r : readers) e.run(r->code());
        standing.clear();
        close_all(e, all);
    }
}

}  // namespace elections_cost_tests
