// What n instances of a service, and n providers that follow it, cost the servers.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace discovery_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

service_instance numbered_instance(std::size_t i) {
    service_instance is("orders");
    is.id("i" + std::to_string(i)).address("10.0.0.1").port(80);
    return is;
}

}  // namespace

TEST_CASE("cost of a service: n instances are announced, and one provider reads each once", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        e.create("/base/orders");
        std::vector<client> all = connected_clients(e, 2);
        const registry services(all[0], "/base");
        std::vector<announcement> announced;
        const cost come = cost_in_a_minute(e, [&] {
            for (std::size_t i = 0; i < n; ++i) announced.push_back(e.run(services.announce(numbered_instance(i))));
        });
        std::optional<provider> orders;
        const cost followed = cost_in_a_minute(e, [&] { orders.emplace(all[1], "/base", "orders"); });
        const cost changed =
            cost_in_a_minute(e, [&] { e.set("/base/orders/i0", numbered_instance(0).port(81).to_json()); });
        const cost left = cost_in_a_minute(e, [&] { announced.pop_back(); });
        INFO(n << " instances come: " << come);
        INFO("a provider: " << followed);
        INFO("one instance has changed: " << changed);
        INFO("one has left: " << left);
        CHECK(orders->view().instances().size() == n - 1);
        CHECK(come.writes == n);
        CHECK(come.requests <= 2 * n);
        CHECK(come.bytes <= 550 * n);
        CHECK(come.watches == static_cast<std::int64_t>(n));
        CHECK(come.ephemerals == static_cast<std::int64_t>(n));
        CHECK(followed.writes == 0);
        CHECK(followed.listings == 1);
        CHECK(followed.requests <= n / 100 + 10);  // each reads up to 256 instances
        CHECK(followed.bytes <= 320 * n + 1000);
        CHECK(followed.watches == 1);
        CHECK(changed.bytes <= 600);
        CHECK(changed.requests <= 1 + 1);  // the provider, and the instance's own watch
        CHECK(left.listings == 0);
        CHECK(left.requests <= 6);
        CHECK(left.bytes <= 500);
        orders.reset();
        announced.clear();
        close_all(e, all);
    }
}

// Each provider reads what has changed: n times the same answer.
TEST_CASE("cost of a service that n providers follow: a change is read once by each", "[numbers]") {
    constexpr std::size_t instances = 10;
    for (const std::size_t n : {std::size_t{10}, std::size_t{100}}) {
        fake_ensemble e;
        for (std::size_t i = 0; i < instances; ++i)
            e.create("/base/orders/i" + std::to_string(i), numbered_instance(i).to_json());
        std::vector<client> all = connected_clients(e, n + 1);
        std::vector<provider> providers;
        const cost began = cost_in_a_minute(e, [&] {
            for (std::size_t i = 0; i < n; ++i) providers.emplace_back(all[i], "/base", "orders");
        });
        std::optional<announcement> one;
        const registry services(all[n], "/base");
        const cost come = cost_in_a_minute(e, [&] { one = e.run(services.announce(numbered_instance(instances))); });
        const cost gone = cost_in_a_minute(e, [&] { one.reset(); });
        const cost idle = cost_in_a_minute(e, [&] { e.run_for(1h); });
        INFO(n << " providers begin: " << began);
        INFO("one instance comes: " << come);
        INFO("one goes: " << gone);
        CHECK(began.listings == n);
        CHECK(began.requests <= 4 * n);
        CHECK(began.bytes <= 3500 * n);  // ten instances
        CHECK(began.watches == static_cast<std::int64_t>(n));
        CHECK(come.listings == 0);
        CHECK(come.requests <= n + 6);
        CHECK(come.bytes <= 400 * n + 600);
        CHECK(gone.listings == 0);
        CHECK(gone.requests <= 6);
        CHECK(gone.bytes <= 50 * n + 500);
        CHECK(idle.requests == 0);
        providers.clear();
        close_all(e, all);
    }
}

}  // namespace discovery_cost_tests
