#include "simulation/simulated_locks.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

const things one{simple_lock()};

void run_unfair(const std::string& name, const faults& f) { run_holdings(name, one, {{simple, 1}}, f); }

}  // namespace

TEST_CASE("unfair_mutex, simulated: users of all sorts", "[simulation]") {
    run_unfair("calm", {});
}

TEST_CASE("unfair_mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_unfair("drops", f);
}

TEST_CASE("unfair_mutex, simulated: connections break, and the locks are lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_unfair("drops that lose", f);
    f.bodies = true;
    run_unfair("drops that lose, and bodies that go on", f);
}

TEST_CASE("unfair_mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_unfair("expiries", f);
}

TEST_CASE("unfair_mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_unfair("operator", f);
}

TEST_CASE("unfair_mutex, simulated: an ACL refuses the removal of the node for a while", "[simulation]") {
    faults f;
    f.drops = f.closed_directories = true;
    run_unfair("closed directories", f);
}

}  // namespace zkasio::test
