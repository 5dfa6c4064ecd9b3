#include "simulation/simulated_mutex.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

// What random runs would meet too rarely, or where one wants to know for certain that it was met.
namespace zkasio::test {
namespace {

constexpr std::uint64_t few = 40;  // seeds

lock_scenario::plan holding(std::size_t steps) {
    lock_scenario::plan p;
    p.hold = steps;
    return p;
}

/// Runs `begin(scenario)` and lets `strike(scenario)` happen before step 0, then before step 1 ... until it has ended
/// before.
void strike_at_every_step(const std::string& name, const std::function<void(queue_scenario&)>& begin,
                          const std::function<void(queue_scenario&)>& strike) {
    bool ended_before = false;
    std::size_t k = 0;
    for (; !ended_before; ++k) {
        ended_before = true;
        run_few_seeds(name + ", before step " + std::to_string(k), 3, [&](simulation& s) {
            queue_scenario scenario(s, simulated_mutex);
            begin(scenario);
            s.after(k, [&] {
                if (!scenario.idle()) ended_before = false;
                strike(scenario);
            });
            scenario.finish();
        });
        REQUIRE(k < 1000);
    }
    CHECK(k > 5);
}

// Of the same client, and of another.
void three_contenders(queue_scenario& l) {
    l.s.add_client();
    l.s.add_client();
    l.contend(0);
    l.contend(1);
    l.contend(1);
}

}  // namespace

TEST_CASE("mutex, simulated: the sequence numbers become negative", "[simulation]") {
    run_few_seeds("wrap", few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        for (int n = 0; n < 3; ++n) s.add_client();
        l.begin_with(std::numeric_limits<std::int32_t>::max() - 1);
        for (int n = 0; n < 3; ++n) l.contend(n, holding(20));
        l.run_until([&] { return l.checked.nodes_alive() == 3; });
        CHECK(l.checked.nth_node(0).ends_with("-lock-2147483646"));
        CHECK(l.checked.nth_node(2).ends_with("-lock--2147483648"));
        l.finish();
        CHECK(l.checked.grants() == 3);
    });
}

TEST_CASE("mutex, simulated: the session expires at any step", "[simulation]") {
    strike_at_every_step("expiry", three_contenders, [](queue_scenario& l) { l.s.ensemble.expire(1); });
}

TEST_CASE("mutex, simulated: the connection breaks at any step", "[simulation]") {
    const auto nothing_applied = [](queue_scenario& l) { l.s.ensemble.drop_connection(1, 0, 0); };
    strike_at_every_step("nothing applied", three_contenders, nothing_applied);
    const auto all_applied = [](queue_scenario& l) { l.s.ensemble.drop_connection(1, 1000, 0); };
    strike_at_every_step("all applied", three_contenders, all_applied);
}

TEST_CASE("mutex, simulated: the connection breaks twice in quick succession", "[simulation]") {
    strike_at_every_step("twice", three_contenders, [](queue_scenario& l) {
        l.s.ensemble.drop_connection(1);
        l.s.after(2 + l.s.pick(8), [&l] { l.s.ensemble.drop_connection(1); });
    });
}

TEST_CASE("mutex, simulated: an acquire is cancelled at any step", "[simulation]") {
    // Behind nobody, behind one of the same client, behind one of another.
    for (const int holder : {-1, 0, 1}) {
        bool too_late = false;
        for (std::size_t k = 0; !too_late; ++k) {
            too_late = true;
            run_few_seeds("cancelled before step " + std::to_string(k), few, [&](simulation& s) {
                queue_scenario l(s, simulated_mutex);
                s.add_client();
                s.add_client();
                if (holder >= 0) {
                    l.contend(holder, holding(8));
                    l.run_until([&] { return l.checked.grants() == 1; });
                }
                lock_scenario::plan p;
                p.cancel_after = k;
                l.contend(0, p);
                l.finish();
                if (l.checked.grants() != (holder >= 0 ? 2u : 1u)) too_late = false;
            });
            REQUIRE(k < 1000);
        }
    }
}

TEST_CASE("mutex, simulated: the answer to the create is lost", "[simulation]") {
    run_few_seeds("create lost", few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        s.add_client();
        l.begin_with(0);
        l.contend(0, holding(1000));
        const std::string create = "create " + lock_directory + '/';
        l.run_until([&] { return s.ensemble.next_request(0).starts_with(create); });
        s.ensemble.drop_connection(0, 1, 0);
        CHECK(l.checked.nodes_alive() == 1);
        l.run_until([&] { return l.checked.grants() == 1; });
        for (int n = 0; n < 20 && !s.ensemble.idle(); ++n) s.step();
        CHECK(l.checked.nodes_alive() == 1);
        l.finish();
    });
}

TEST_CASE("mutex, simulated: an operator deletes the node of a waiter", "[simulation]") {
    for (const int predecessor : {0, 1}) {
        run_few_seeds(predecessor == 0 ? "behind one of the same client" : "behind another client", 4 * few,
                      [&](simulation& s) {
                          queue_scenario l(s, simulated_mutex);
                          for (int n = 0; n < 3; ++n) s.add_client();
                          l.contend(predecessor, holding(40));
                          l.run_until([&] { return l.checked.grants() == 1; });
                          l.contend(0, holding(60));
                          l.run_until([&] { return l.checked.nodes_alive() == 2; });
                          l.contend(2, holding(30));
                          l.run_until([&] { return l.checked.nodes_alive() == 3; });
                          s.ensemble.operate(detail::remove_request{l.checked.nth_node(1), any_version});
                          for (int n = 0; predecessor == 0 && l.checked.grants() == 1 && n < 1000; ++n) s.step();
                          for (int n = 0; n < 25; ++n) s.step();
                          if (!l.checked.all_told()) throw violation("it was not told that its node is gone");
                          l.finish();
                      });
    }
}

// All ahead are followed, and no listing follows their ends.
// Fails without G22.
TEST_CASE("mutex, simulated: of the contenders ahead those give up that are the nearest", "[simulation]") {
    run_few_seeds("nearest first", 4 * few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        for (int n = 0; n < 4; ++n) s.add_client();
        l.contend(0, holding(150));
        l.run_until([&] { return l.checked.grants() == 1; });
        for (const int client : {1, 2}) {
            lock_scenario::plan p = holding(0);
            p.cancel_after = 50 + s.pick(60);
            l.contend(client, p);
            l.run_until([&] { return l.checked.nodes_alive() == static_cast<std::size_t>(client) + 1; });
        }
        l.contend(3, holding(20));
        l.contend(3, holding(20));
        l.run_until([&] { return l.checked.nodes_alive() == 5; });
        l.finish();
        CHECK(l.checked.grants() == 3);
    });
}

// The watches on the nodes ahead outlive the connection, that on its own node does not.
// Fails without G20.
TEST_CASE("mutex, simulated: while a waiter has no connection its node is deleted, and all ahead leave",
          "[simulation]") {
    run_few_seeds("deleted before the ends", few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        for (int n = 0; n < 4; ++n) s.add_client();
        l.contend(0, holding(100));
        l.run_until([&] { return l.checked.grants() == 1; });
        const auto released = s.now() + 100;
        std::size_t queued = 1;
        for (const auto& [client, hold] : {std::pair(1, 0u), {2, 40u}, {3, 200u}}) {
            l.contend(client, holding(hold));
            ++queued;
            l.run_until([&] { return l.checked.nodes_alive() == queued; });
        }
        // While the others go on, this client waits for its connection.
        const auto at_random = s.choose;
        s.after(static_cast<std::size_t>(released - s.now()), [&s, node = l.checked.nth_node(2)] {
            s.ensemble.drop_connection(2);
            s.ensemble.operate(detail::remove_request{node, any_version});
            s.choose = [](const std::vector<sim_ensemble::step>& steps) {
                const auto other =
                    std::find_if(steps.begin(), steps.end(), [](const auto& step) { return step.client != 2; });
                return static_cast<std::size_t>(other == steps.end() ? 0 : other - steps.begin());
            };
        });
        l.run_until([&] { return l.checked.grants() == 3; });
        s.choose = at_random;
        l.finish();
        CHECK(l.checked.grants() == 4);
    });
}

// Fails without G24.
TEST_CASE("mutex, simulated: an operator deletes the nodes of waiters who hand over to each other", "[simulation]") {
    run_few_seeds("in a row", 4 * few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        s.add_client();
        s.add_client();
        l.contend(0, holding(40));
        l.run_until([&] { return l.checked.grants() == 1; });
        std::size_t queued = 1;
        for (const auto& [client, hold] : {std::pair(0, 0u), {0, 0u}, {0, 60u}, {1, 30u}}) {
            l.contend(client, holding(hold));
            ++queued;
            l.run_until([&] { return l.checked.nodes_alive() == queued; });
        }
        const std::vector<std::string> deleted{l.checked.nth_node(1), l.checked.nth_node(2), l.checked.nth_node(3)};
        for (const std::string& path : deleted) s.ensemble.operate(detail::remove_request{path, any_version});
        l.finish();
    });
}

// Fails without G5.
TEST_CASE("mutex, simulated: the directory was removed since the last time", "[simulation]") {
    run_few_seeds("removed", few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        s.add_client();
        s.add_client();
        // What was known of the queue is kept for as long as a guard is.
        std::optional<lock_guard> old;
        std::function<asio::awaitable<void>()> once = [&]() -> asio::awaitable<void> {
            const mutex lock =
                mutex_of(s.client_number(0), l.checked.asks(0, simulated_mutex, lock_kind::exclusive, true));
            lock_guard guard = co_await lock.acquire();
            old.emplace(std::move(guard));
            co_await old->release();
        };
        s.spawn(once());
        s.on_quiet = [] {};
        s.run();
        s.ensemble.remove_empty_containers();
        CHECK_FALSE(s.ensemble.tree().find(lock_directory));
        l.contend(1, holding(50));
        l.run_until([&] { return l.checked.grants() == 1; });
        l.contend(0);
        l.run_until([&] { return l.idle(); });
        CHECK(l.checked.grants() == 2);
        old.reset();
        s.run();
        s.close();
    });
}

// Without its node it has kept nobody out for a while.
// Fails without G25.
TEST_CASE("mutex, simulated: an owner that knows of its loss hands nothing over", "[simulation]") {
    run_few_seeds("knows of its loss", few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        s.add_client();
        s.add_client();
        l.contend(1, holding(10));
        l.run_until([&] { return l.checked.grants() == 1; });
        std::size_t queued = 1;
        for (const auto& [client, hold] : {std::pair(0, 60u), {0, 10u}, {1, 300u}}) {
            l.contend(client, holding(hold));
            ++queued;
            l.run_until([&] { return l.checked.nodes_alive() == queued; });
        }
        l.run_until([&] { return l.checked.grants() == 2; });
        const std::vector<std::string> deleted{l.checked.nth_node(0), l.checked.nth_node(1)};
        for (const std::string& path : deleted) s.ensemble.operate(detail::remove_request{path, any_version});
        l.run_until([&] { return l.checked.all_told() && l.checked.grants() == 3; });
        for (const auto end = s.now() + 200; s.now() < end;) s.step();
        if (l.checked.grants() != 3) throw violation("a contender without a node was handed the lock");
        l.finish();
    });
}

// Who stood before it when it was made, and whether it is still there, is not known.
// Fails without G10.
TEST_CASE("mutex, simulated: the answer to the create is lost, and then an operator deletes the node", "[simulation]") {
    run_few_seeds("lost and deleted", 10 * few, [](simulation& s) {
        queue_scenario l(s, simulated_mutex);
        s.add_client();
        s.add_client();
        const std::size_t hold = 12 + s.pick(30);
        l.contend(0, holding(hold));
        l.run_until([&] { return l.checked.grants() == 1; });
        const auto released = s.now() + hold;
        l.contend(0, holding(40));
        const std::string create = "create " + lock_directory + '/';
        l.run_until([&] { return s.ensemble.next_request(0).starts_with(create); });
        s.ensemble.drop_connection(0, 1, 0);
        // While the other client joins the queue, this one waits for its connection.
        const auto at_random = std::exchange(s.choose, [](const std::vector<sim_ensemble::step>& steps) {
            const auto other =
                std::find_if(steps.begin(), steps.end(), [](const auto& step) { return step.client == 1; });
            return static_cast<std::size_t>(other == steps.end() ? 0 : other - steps.begin());
        });
        l.contend(1, holding(60));
        l.run_until([&] { return l.checked.nodes_alive() == 3; });
        s.choose = at_random;
        l.contend(0, holding(5));
        // About when the first lets go.
        const auto left = released > s.now() ? static_cast<std::size_t>(released - s.now()) : 0;
        s.after(left + s.pick(3), [&s, node = l.checked.nth_node(1)] {
            s.ensemble.operate(detail::remove_request{node, any_version});
        });
        l.finish();
    });
}

}  // namespace zkasio::test
