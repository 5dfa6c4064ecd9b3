#include "simulation/simulated_locks.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

const things one{simple_lock()};

void run(const std::string& name, const faults& f) { run_holdings(name, one, {{simple, 1}}, f); }

}  // namespace

TEST_CASE("unfair_mutex, simulated: users of all sorts", "[simulation]") {
    run("calm", {});
}

TEST_CASE("unfair_mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run("drops", f);
}

TEST_CASE("unfair_mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run("expiries", f);
}

TEST_CASE("unfair_mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run("operator", f);
}

}  // namespace zkasio::test
