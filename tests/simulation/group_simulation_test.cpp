#include "simulation/group_scenario.hpp"

#include "support/catch.hpp"

#include <string>

namespace group_simulation_tests {
namespace {

void run_group(const std::string& name, const group_faults& f) {
    run_seeds("group, " + name, 200, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        s.ensemble.new_sessions_lag = s.ensemble.lagging && s.chance(50);
        s.draw_version_of_servers();
        group_scenario(s, f).run();
    });
}

}  // namespace

TEST_CASE("group, simulated: members come and go", "[simulation]") { run_group("calm", {}); }

TEST_CASE("group, simulated: connections break", "[simulation]") {
    group_faults f;
    f.drops = true;
    run_group("drops", f);
}

TEST_CASE("group, simulated: sessions expire", "[simulation]") {
    group_faults f;
    f.drops = f.expiries = true;
    run_group("expiries", f);
}

TEST_CASE("group, simulated: an operator deletes members, and creates nodes in their way", "[simulation]") {
    group_faults f;
    f.drops = f.operator_deletes = f.operator_creates = true;
    run_group("operator", f);
}

TEST_CASE("group, simulated: an operator is about while sessions expire", "[simulation]") {
    group_faults f;
    f.drops = f.expiries = f.operator_deletes = f.operator_creates = true;
    run_group("all of it", f);
}

}  // namespace group_simulation_tests
