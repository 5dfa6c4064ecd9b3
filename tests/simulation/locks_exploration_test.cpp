#include "simulation/explored.hpp"
#include "simulation/queue_scenario.hpp"
#include "simulation/simulated_locks.hpp"
#include "simulation/simulated_mutex.hpp"

#include "support/catch.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <memory>
#include <string>
#include <utility>

// All schedules of few users of a lock.
namespace locks_exploration_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

template <class Scenario>
void explore_users(Scenario& l, const explored_plan& p, const checker& checks, lock_scenario::plan (*of)(int)) {
    begin_exploring(l.s, p, [&](std::size_t n) {
        if (checks.nodes_alive() > n) l.s.ensemble.operate(detail::remove_request{checks.nth_node(n), any_version});
    });
    for (int n = 0; n < p.users; ++n) l.contend(n % 2, of(n));
    l.s.run();
    l.s.explore(false);
    l.finish();
}

void explore_queue(const std::string& name, const lock_under_test& lock, lock_scenario::plan (*of)(int)) {
    run_all_schedules(name, [&](simulation& s, const explored_plan& p) {
        queue_scenario l(s, lock);
        l.begin_with(0);
        explore_users(l, p, l.checked, of);
    });
}

// @param directories exist from the beginning.
void explore_holdings(const std::string& name, const things& locks, const std::map<std::string, int>& there_is,
                      const std::vector<std::string>& directories, lock_scenario::plan (*of)(int)) {
    run_all_schedules(name, [&](simulation& s, const explored_plan& p) {
        make_nodes(s, directories);
        auto checks = std::make_unique<holdings_checker>(s.ensemble, there_is);
        const holdings_checker& seen = *checks;
        lock_scenario l(s, locks, std::move(checks));
        explore_users(l, p, seen, of);
    });
}

asio::awaitable<lock_guard> acquire_shared_mutex(client zk, std::string id, lock_kind kind) {
    const shared_mutex lock(zk, lock_directory, shared_mutex_options().data(std::move(id)));
    if (kind == lock_kind::shared) co_return co_await lock.acquire_shared();
    co_return co_await lock.acquire();
}

asio::awaitable<std::optional<lock_guard>> try_acquire_shared_mutex(client zk, std::string id, lock_kind kind) {
    const shared_mutex lock(zk, lock_directory, shared_mutex_options().data(std::move(id)));
    if (kind == lock_kind::shared) co_return co_await lock.try_acquire_shared();
    co_return co_await lock.try_acquire();
}

lock_under_test both(const std::string& one, const std::string& other) {
    return thing({{one}, {other}}, [one, other](client zk, std::string id) {
        return multi_mutex(zk).add(mutex_at(zk, one, id)).add(mutex_at(zk, other, id));
    });
}

semaphore one_permit(client zk, std::string id) {
    return {std::move(zk), pool, permits::fixed(1), semaphore_options().data(std::move(id))};
}

lock_scenario::plan any(int) { return {}; }

}  // namespace

TEST_CASE("mutex, all schedules", "[exploration]") { explore_queue("mutex", simulated_mutex, any); }

TEST_CASE("mutex, all schedules: the second user cancels", "[exploration]") {
    explore_queue("mutex, cancelled", simulated_mutex, [](int n) {
        lock_scenario::plan p;
        if (n == 1) p.cancel_after = 1;
        return p;
    });
}

TEST_CASE("mutex, all schedules: the second user only tries", "[exploration]") {
    explore_queue("mutex, try", simulated_mutex, [](int n) {
        lock_scenario::plan p;
        p.patient = n != 1;
        return p;
    });
}

TEST_CASE("shared_mutex, all schedules", "[exploration]") {
    const lock_under_test lock{acquire_shared_mutex, try_acquire_shared_mutex};
    explore_queue("shared_mutex", lock, [](int n) {
        lock_scenario::plan p;
        p.kind = n == 1 ? lock_kind::exclusive : lock_kind::shared;
        return p;
    });
}

TEST_CASE("semaphore, all schedules", "[exploration]") {
    explore_holdings("semaphore", {thing({n_permits(1)}, one_permit)}, {{permits_of_pool, 1}},
                     {"/locks", pool, permits_of_pool, pool + "/locks"}, any);
}

TEST_CASE("multi_mutex, all schedules", "[exploration]") {
    const std::string a = "/locks/a", b = "/locks/b", c = "/locks/c";
    explore_holdings("multi_mutex", {both(a, b), both(b, c)}, {{a, 1}, {b, 1}, {c, 1}}, {"/locks", a, b, c}, [](int n) {
        lock_scenario::plan p;
        p.what = static_cast<std::size_t>(n % 2);
        return p;
    });
}

}  // namespace locks_exploration_tests
