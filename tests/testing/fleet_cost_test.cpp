// What sessions, and whole processes with several recipes each, cost the servers: the laws behind the example of
// docs/cost.md.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fleet_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

constexpr std::size_t locks_each = 10, instances_each = 2;

service_instance numbered_instance(std::size_t i, std::uint16_t port = 80) {
    return service_instance("orders").id("i" + std::to_string(i)).address("10.0.0.1").port(port);
}

// A process of the fleet: holds ten locks of its own, is a member of a group, announces two instances of a service, and
// follows the group and the service.
class process {
public:
    process(fake_ensemble& e, const client& zk, std::size_t i) {
        for (std::size_t k = 0; k < locks_each; ++k)
            locks_.push_back(e.run(mutex(zk, "/locks/" + std::to_string(locks_each * i + k)).acquire()));
        member_.emplace(e.run(group(zk, "/group").join("m" + std::to_string(i))));
        const registry services(zk, "/base");
        for (std::size_t k = 0; k < instances_each; ++k)
            instances_.push_back(e.run(services.announce(numbered_instance(instances_each * i + k))));
        others_.emplace(group(zk, "/group").observe());
        orders_.emplace(zk, "/base", "orders");
        e.run(others_->ready());
        e.run(orders_->ready());
    }
    std::size_t members_seen() const { return others_->members().members.size(); }
    std::size_t instances_seen() const { return orders_->view().instances().size(); }

private:
    std::vector<lock_guard> locks_;
    std::optional<group_membership> member_;
    std::vector<announcement> instances_;
    std::optional<group_observer> others_;
    std::optional<provider> orders_;
};

// n of them, with a client each.
class fleet {
public:
    fleet(fake_ensemble& e, std::size_t n, const client_options& how) : e_(e) {
        for (std::size_t i = 0; i < locks_each * n; ++i) e.create("/locks/" + std::to_string(i));
        e.create("/group");
        e.create("/base/orders");
        for (std::size_t i = 0; i < n; ++i) clients_.push_back(e.client(how));
        for (const client& zk : clients_) e.run(zk.connected());
        for (std::size_t i = 0; i < n; ++i) processes_.push_back(std::make_unique<process>(e, clients_[i], i));
        e.run_for(1min);
    }
    ~fleet() {
        processes_.clear();
        close_all(e_, clients_);
    }
    fleet(const fleet&) = delete;
    fleet& operator=(const fleet&) = delete;

    // The process ends, and begins again.
    void replace(std::size_t i, const client_options& how) {
        processes_[i].reset();
        e_.run(clients_[i].close());
        clients_[i] = e_.client(how);
        e_.run(clients_[i].connected());
        processes_[i] = std::make_unique<process>(e_, clients_[i], i);
    }
    const std::vector<client>& clients() const { return clients_; }
    const std::vector<std::unique_ptr<process>>& processes() const { return processes_; }

private:
    fake_ensemble& e_;
    std::vector<client> clients_;
    std::vector<std::unique_ptr<process>> processes_;
};

}  // namespace

TEST_CASE("cost of a session: two requests, and its end removes all its ephemeral nodes with one write", "[numbers]") {
    for (const std::size_t n : user_counts)
        for (const bool expires : {false, true}) {
            fake_ensemble e;
            e.create("/r");
            std::optional<client> zk;
            const cost opened = cost_in_a_minute(e, [&] {
                zk.emplace(e.client(rare_heartbeats(e)));
                e.run(zk->connected());
            });
            e.run([&]() -> asio::awaitable<void> {
                for (std::size_t i = 0; i < n; ++i) {
                    const std::string path = "/r/" + std::to_string(i);
                    co_await zk->create(path, bytes(), create_options().mode(create_mode::ephemeral));
                }
            });
            const cost ended = cost_in_a_minute(e, [&] {
                if (expires)
                    e.expire(*zk);
                else
                    e.run(zk->close());
            });
            INFO(n << " nodes, opened: " << opened << "; " << (expires ? "expired: " : "closed: ") << ended);
            CHECK(opened.requests <= 2);
            CHECK(opened.bytes <= 200);
            CHECK(ended.requests <= 2);
            CHECK(ended.writes <= 1);
            CHECK(ended.bytes <= 300);
            CHECK(ended.ephemerals == -static_cast<std::int64_t>(n));
            if (expires) e.run(zk->close());
        }
}

TEST_CASE("cost of new data: one write, and a read for each that follows", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{100}}) {
        fake_ensemble e;
        e.create("/group");
        e.create("/base/orders");
        std::vector<client> all = connected_clients(e, n + 1);
        const group_membership member = e.run(group(all[n], "/group").join("m"));
        const announcement instance = e.run(registry(all[n], "/base").announce(numbered_instance(0)));
        std::vector<group_observer> observers;
        std::vector<provider> providers;
        for (std::size_t i = 0; i < n; ++i) {
            observers.push_back(group(all[i], "/group").observe());
            providers.emplace_back(all[i], "/base", "orders");
        }
        e.run_for(1min);
        const cost of_member = cost_in_a_minute(e, [&] { e.run(member.set_data(bytes("new"))); });
        const cost of_instance = cost_in_a_minute(e, [&] { e.run(instance.update(numbered_instance(0, 81))); });
        INFO(n << " observers, a member's data: " << of_member << "; an instance: " << of_instance);
        for (const cost& c : {of_member, of_instance}) {
            CHECK(c.writes == 1);
            CHECK(c.requests <= n + 4);
            CHECK(c.listings == 0);
            CHECK(c.bytes <= 400 * n + 800);
            CHECK(c.watches == 0);
        }
        for (const provider& p : providers) CHECK(p.view().instances().front().port() == std::uint16_t{81});
        observers.clear();
        providers.clear();
        close_all(e, all);
    }
}

// Half of the session timeout's reads become writes where something is held.
TEST_CASE("cost of a fleet: while nothing happens, eight requests of each process in a session timeout", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{50}}) {
        fake_ensemble e;
        fleet all(e, n, client_options("fake").session_timeout(10s));
        const cost_meter meter(e);
        e.run_for(100s);
        const cost c = meter.read();
        INFO(n << " processes, ten session timeouts: " << c << "; in all " << e.watches() << " watches, "
               << e.ephemerals() << " ephemerals");
        CHECK(c.requests <= 82 * n);
        CHECK(c.writes <= 41 * n);
        CHECK(c.listings == 0);
        CHECK(c.bytes <= 10 * n * (700 + 360 * locks_each));
        CHECK(e.watches() == n * (locks_each + 1 + instances_each + 2));
        CHECK(e.ephemerals() == n * (locks_each + 1 + instances_each));
    }
}

TEST_CASE("cost of a fleet: one process is replaced, and all connections of one server break", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{50}}) {
        fake_ensemble e;
        const client_options how = rare_heartbeats(e);
        fleet all(e, n, how);
        const cost replaced = cost_in_a_minute(e, [&] { all.replace(0, how); });
        const std::size_t gone = n / 5;
        const cost cut = cost_in_a_minute(e, [&] {
            for (std::size_t i = 0; i < gone; ++i) e.cut(all.clients()[i]);
        });
        INFO(n << " processes, one is replaced: " << replaced << "; " << gone << " get another connection: " << cut);
        for (const auto& one : all.processes()) {
            CHECK(one->members_seen() == n);
            CHECK(one->instances_seen() == instances_each * n);
        }
        const std::size_t nodes = locks_each + 1 + instances_each;
        CHECK(replaced.writes <= nodes + 1);  // the end of the session removes all nodes of the former process
        CHECK(replaced.bytes <= 1900 * n + 7000);
        CHECK(replaced.requests <= (1 + instances_each) * n + 8 * nodes);
        CHECK(replaced.watches == 0);
        CHECK(replaced.ephemerals == 0);
        CHECK(cut.writes == 0);
        CHECK(cut.requests <= gone * (nodes + 3 * n / 100 + 30));
        CHECK(cut.bytes <= gone * (900 * n + 3000));
    }
}

}  // namespace fleet_cost_tests
