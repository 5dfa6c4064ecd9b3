#include "simulation/discovery_scenario.hpp"

#include "support/catch.hpp"

#include <string>

namespace discovery_simulation_tests {
namespace {

void run_discovery(const std::string& name, const discovery_faults& f) {
    run_seeds("discovery, " + name, 150, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        s.ensemble.new_sessions_lag = s.ensemble.lagging && s.chance(50);
        s.draw_version_of_servers();
        discovery_scenario(s, f).run();
    });
}

}  // namespace

TEST_CASE("discovery, simulated: instances come and go", "[simulation]") { run_discovery("calm", {}); }

TEST_CASE("discovery, simulated: connections break", "[simulation]") {
    discovery_faults f;
    f.drops = true;
    run_discovery("drops", f);
}

TEST_CASE("discovery, simulated: sessions expire", "[simulation]") {
    discovery_faults f;
    f.drops = f.expiries = true;
    run_discovery("expiries", f);
}

TEST_CASE("discovery, simulated: an operator is about while sessions expire", "[simulation]") {
    discovery_faults f;
    f.drops = f.expiries = f.operator_deletes = f.operator_creates = true;
    run_discovery("all of it", f);
}

}  // namespace discovery_simulation_tests
