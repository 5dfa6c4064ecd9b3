// What n members of a double_barrier, and n clients that wait for a barrier or a latch, cost the servers.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/client.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace barriers_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using entries = std::vector<std::optional<barrier_entry>>;
using users = std::vector<std::unique_ptr<running>>;

asio::awaitable<void> enter(double_barrier into, std::optional<barrier_entry>& to) {
    barrier_entry entry = co_await into.enter();
    to.emplace(std::move(entry));
}

users enter_at_once(fake_ensemble& e, const std::vector<client>& all, std::size_t members, entries& to) {
    users entering;
    for (std::size_t i = 0; i < to.size(); ++i)
        entering.push_back(
            std::make_unique<running>(e.get_executor(), enter(double_barrier(all[i], "/b", members), to[i])));
    return entering;
}

users leave_at_once(fake_ensemble& e, entries& all) {
    users leaving;
    for (auto& entry : all) leaving.push_back(std::make_unique<running>(e.get_executor(), entry->leave()));
    return leaving;
}

void end(fake_ensemble& e, const users& all) {
    for (const auto& one : all) {
        const std::error_code code = e.run(one->code());
        CHECK_FALSE(code);
    }
}

}  // namespace

TEST_CASE("cost of a double_barrier: members that enter and leave together", "[barrier][numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/b");
        entries inside(n);
        const cost_meter entering(e);
        end(e, enter_at_once(e, all, n, inside));
        const cost in = entering.read();
        INFO(n << " members enter: " << in);
        CHECK(in.writes <= 2 * n + 4);  // a create, and an attempt to create `ready` of those that count enough
        CHECK(in.listings <= 3 * n);
        CHECK(in.requests <= 16 * n);
        CHECK(in.bytes <= 70 * n * n + 1500 * n);  // each listing has all names
        const cost_meter leaving(e);
        end(e, leave_at_once(e, inside));
        const cost out = leaving.read();
        INFO(n << " members leave: " << out);
        CHECK(out.writes <= n + 2);  // a removal each, and that of `ready`
        CHECK(out.listings <= 5 * n);
        CHECK(out.requests <= 18 * n);
        CHECK(out.bytes <= 45 * n * n + 1500 * n);
        CHECK(e.watches() == 0);
        inside.clear();
        close_all(e, all);
    }
}

TEST_CASE("cost of a double_barrier: members that come late join the round", "[barrier][numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n + 1);
        e.create("/b");
        entries first(1);
        end(e, enter_at_once(e, {all.back()}, 1, first));
        entries inside(n);
        const cost_meter entering(e);
        for (std::size_t i = 0; i < n; ++i) {  // one after another, as in a rolling restart
            running one(e.get_executor(), enter(double_barrier(all[i], "/b", 1), inside[i]));
            const std::error_code code = e.run(one.code());
            CHECK_FALSE(code);
        }
        const cost in = entering.read();
        INFO(n << " members join: " << in);
        CHECK(in.writes <= 2 * n);
        CHECK(in.requests <= 16 * n);
        CHECK(in.bytes <= 35 * n * n + 2000 * n);
        inside.push_back(std::move(first[0]));
        const cost_meter leaving(e);
        end(e, leave_at_once(e, inside));
        const cost out = leaving.read();
        INFO(n << " members leave: " << out);
        CHECK(out.writes <= n + 3);
        CHECK(out.requests <= 18 * n + 20);
        CHECK(out.bytes <= 45 * n * n + 2000 * n);
        inside.clear();
        close_all(e, all);
    }
}

TEST_CASE("cost of a barrier and a latch: clients that wait", "[barrier][numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/gate");
        const cost_meter meter(e);
        users waiting;
        for (const client& zk : all)
            waiting.push_back(std::make_unique<running>(e.get_executor(), barrier(zk, "/gate").wait()));
        e.run_for(1s);
        const cost asked = meter.read();
        INFO(n << " clients wait for a barrier: " << asked);
        CHECK(asked.requests == n);
        CHECK(asked.bytes <= 150 * n);
        CHECK(asked.watches == static_cast<std::int64_t>(n));
        e.remove("/gate");
        end(e, waiting);
        e.run_for(1s);
        const cost woken = meter.read();
        INFO("until all were woken: " << woken);
        CHECK(woken.requests <= 5 * n);
        CHECK(woken.bytes <= 400 * n);
        CHECK(woken.watches == 0);
        waiting.clear();

        const cost_meter reports(e);
        for (const client& zk : all)
            waiting.push_back(std::make_unique<running>(e.get_executor(), latch(zk, "/latch", 3).wait()));
        e.run_for(1s);
        for (const char* id : {"a", "b", "c"}) e.run(latch(all[0], "/latch", 3).count_down(id));
        end(e, waiting);
        e.run_for(1s);
        const cost l = reports.read();
        INFO(n << " clients wait for a latch: " << l);
        CHECK(l.writes <= 8);
        CHECK(l.listings <= 2 * n + 4);
        CHECK(l.requests <= 8 * n + 20);
        CHECK(l.bytes <= 600 * n + 1500);
        CHECK(l.watches == 0);
        close_all(e, all);
    }
}

TEST_CASE("cost of count_down(): a create and a listing each, four writes while there is no directory", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        const latch in_turn(all[0], "/in-turn", n + 1), at_once(all[0], "/at-once", n + 1);
        const cost_meter meter(e);
        for (std::size_t i = 0; i < n; ++i) e.run(in_turn.count_down(std::to_string(i)));
        const cost one = meter.read();
        INFO(n << " reports, one after another: " << one);
        CHECK(one.requests <= 2 * n + 4);
        CHECK(one.writes <= n + 4);
        CHECK(one.bytes <= 4 * n * n + 500 * n);  // each listing has all names, of 7 bytes
        CHECK(one.listings == n);
        CHECK(one.watches == 0);
        const cost c = cost_of_users(e, n, [&](std::size_t i) -> asio::awaitable<void> {
            co_await at_once.count_down(std::to_string(i));
        });
        INFO(n << " reports at once: " << c);
        CHECK(c.requests <= 5 * n);
        CHECK(c.writes <= 4 * n);
        CHECK(c.bytes <= 8 * n * n + 600 * n);
        CHECK(c.listings == n);
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        close_all(e, all);
    }
}

}  // namespace barriers_cost_tests
