#include "simulation/value_scenario.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

void run_values(const std::string& name, const value_faults& f) {
    run_seeds("values, " + name, 200, [&](simulation& s) {
        s.ensemble.lagging = s.chance(60);
        s.ensemble.new_sessions_lag = s.ensemble.lagging && s.chance(50);
        value_scenario(s, f).run_at_random();
    });
}

}  // namespace

TEST_CASE("config_value and modify, simulated: changes of several clients", "[simulation]") { run_values("calm", {}); }

TEST_CASE("config_value and modify, simulated: connections break", "[simulation]") {
    value_faults f;
    f.drops = true;
    run_values("drops", f);
}

TEST_CASE("config_value and modify, simulated: sessions expire", "[simulation]") {
    value_faults f;
    f.drops = f.expiries = true;
    run_values("expiries", f);
}

TEST_CASE("config_value and modify, simulated: processes are stopped, and servers put requests off", "[simulation]") {
    value_faults f;
    f.drops = f.stops = true;
    f.throttled = 15;
    run_values("stops", f);
}

TEST_CASE("config_value and modify, simulated: changes are cancelled, and an operator is about", "[simulation]") {
    value_faults f;
    f.drops = f.expiries = f.cancellations = f.operator_writes = f.operator_deletes_receipts = true;
    run_values("all of it", f);
}

}  // namespace zkasio::test
