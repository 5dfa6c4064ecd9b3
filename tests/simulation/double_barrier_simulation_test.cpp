#include "simulation/barrier_scenario.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

// As many as it takes, one less, and more, which only exactly() keeps out.
void run_barriers(const std::string& name, const faults& f) {
    run_seeds("double_barrier, " + name, 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        barrier_scenario::shape shape;
        shape.members = 1 + s.pick(4);
        shape.workers = shape.members + (s.chance(50) ? s.pick(3) : 0);
        shape.exactly = s.chance(40);
        barrier_scenario(s, shape).run_at_random(f);
    });
}

void explore_barrier(const std::string& name, barrier_scenario::explored what) {
    run_all_schedules(name, [&](simulation& s, const explored_plan& p) {
        make_nodes(s, {"/barriers", barrier_directory});
        barrier_scenario::shape shape;
        shape.members = shape.workers = static_cast<std::size_t>(p.users);
        barrier_scenario(s, shape).run_all_orders(p, what);
    });
}

}  // namespace

TEST_CASE("double_barrier, simulated: members of all sorts", "[simulation]") { run_barriers("calm", {}); }

TEST_CASE("double_barrier, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_barriers("drops", f);
}

TEST_CASE("double_barrier, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_barriers("expiries", f);
}

TEST_CASE("double_barrier, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_barriers("containers", f);
}

TEST_CASE("double_barrier, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_barriers("operator", f);
}

TEST_CASE("double_barrier, all schedules", "[exploration]") {
    explore_barrier("double_barrier", barrier_scenario::explored::all);
}

TEST_CASE("double_barrier, all schedules: entering", "[exploration]") {
    explore_barrier("double_barrier, entering", barrier_scenario::explored::entering);
}

TEST_CASE("double_barrier, all schedules: leaving", "[exploration]") {
    explore_barrier("double_barrier, leaving", barrier_scenario::explored::leaving);
}

}  // namespace zkasio::test
