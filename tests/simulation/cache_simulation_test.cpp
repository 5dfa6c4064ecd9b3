#include "simulation/cache_scenario.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

void run_caches(const std::string& name, std::uint64_t seeds, const cache_faults& f) {
    run_seeds("caches, " + name, seeds, [&](simulation& s) {
        s.ensemble.lagging = s.chance(60);
        s.ensemble.new_sessions_lag = s.ensemble.lagging && s.chance(70);
        s.ensemble.most_lag = 1 + s.pick(30);
        cache_scenario(s).run_at_random(f);
    });
}

}  // namespace

TEST_CASE("caches, simulated: a tree that changes", "[simulation]") { run_caches("calm", 1000, {}); }

TEST_CASE("caches, simulated: connections break", "[simulation]") {
    cache_faults f;
    f.drops = f.outages = true;
    run_caches("drops", 1000, f);
}

// Fails without the sync() that comes first in each further session: new sessions begin at servers that lag behind.
TEST_CASE("caches, simulated: sessions expire", "[simulation]") {
    cache_faults f;
    f.drops = f.expiries = f.outages = true;
    run_caches("expiries", 1000, f);
}

TEST_CASE("caches, simulated: processes are stopped and go on", "[simulation]") {
    cache_faults f;
    f.drops = f.expiries = f.stops = true;
    run_caches("stops", 1000, f);
}

TEST_CASE("caches, simulated: servers put requests off", "[simulation]") {
    cache_faults f;
    f.drops = f.expiries = true;
    f.throttled = 15;
    run_caches("throttled", 1000, f);
}

}  // namespace zkasio::test
