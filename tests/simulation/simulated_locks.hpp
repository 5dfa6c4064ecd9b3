#pragma once

#include "simulation/holdings_checker.hpp"
#include "simulation/lock_scenario.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

// What the simulations of locks other than plain queues ask for.
namespace zkasio::test {

using things = std::vector<lock_under_test>;

/// A lock that `make(client, id)` returns, asked for with `how`.
template <class Make, class... How>
lock_under_test thing(std::vector<share> shares, Make make, How... how) {
    lock_under_test t;
    t.shares = std::move(shares);
    t.acquire = [=](client zk, std::string id, lock_kind) { return make(zk, id).acquire(how...); };
    t.try_acquire = [=](client zk, std::string id, lock_kind) { return make(zk, id).try_acquire(how...); };
    return t;
}

inline mutex mutex_at(client zk, const std::string& path, std::string id) {
    return {std::move(zk), path, mutex_options().data(std::move(id))};
}

inline const std::string pool = "/locks/pool", permits_of_pool = pool + "/leases";
constexpr int most_permits = 3;
inline semaphore pool_of(client zk, std::string id) {
    return {std::move(zk), pool, permits::fixed(most_permits), semaphore_options().data(std::move(id))};
}
inline share n_permits(std::size_t n) { return {permits_of_pool, n}; }
inline lock_under_test from_pool(int n) { return thing({n_permits(static_cast<std::size_t>(n))}, pool_of, n); }

inline const std::string simple = "/locks/simple";
/// Without a back-off: in a simulation no time passes.
inline unfair_mutex simple_of(client zk, std::string id) {
    const std::chrono::milliseconds none{0};
    return {std::move(zk), simple, unfair_mutex_options().data(std::move(id)).back_off(none, none)};
}
inline lock_under_test simple_lock() { return thing({{simple}}, simple_of); }

/// Random runs of all sorts of users.
inline void run_holdings(const std::string& name, const things& locks, const std::map<std::string, int>& there_is,
                         faults f) {
    f.all_sorts_of_users = true;
    run_seeds(name, 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        lock_scenario(s, locks, std::make_unique<holdings_checker>(s.ensemble, there_is)).run_at_random(f);
    });
}

}  // namespace zkasio::test
