#include "simulation/election_scenario.hpp"
#include "simulation/observer_scenario.hpp"

#include "support/catch.hpp"

#include <zkasio/path.hpp>

namespace zkasio::test {
namespace {

void run_election(const std::string& name, const faults& f) {
    run_seeds("election, " + name, 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        election_scenario(s).run_at_random(f);
    });
}

void explore_election(const std::string& name, election_scenario::observers there) {
    run_all_schedules(name, [&](simulation& s, const explored_plan& p) {
        make_nodes(s, {std::string(parent_path(election_directory)), election_directory});
        election_scenario(s).run_all_orders(p, there);
    });
}

void run_observers(const std::string& name, bool expiries) {
    run_seeds("observers, " + name, 1000, [&](simulation& s) {
        s.ensemble.lagging = s.chance(70);
        s.ensemble.new_sessions_lag = s.ensemble.lagging && s.chance(70);
        s.ensemble.most_lag = 1 + s.pick(20);
        observer_scenario(s).run_at_random(expiries);
    });
}

}  // namespace

TEST_CASE("election, simulated: candidates and observers of all sorts", "[simulation]") { run_election("calm", {}); }

TEST_CASE("election, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_election("drops", f);
}

TEST_CASE("election, simulated: connections break, and the leadership is lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_election("drops that lose", f);
}

// Fails without the sync() that comes first in each session of an observer.
TEST_CASE("election, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_election("expiries", f);
}

TEST_CASE("election, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_election("containers", f);
}

TEST_CASE("election, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_election("operator", f);
}

TEST_CASE("election, simulated: an operator deletes the directory", "[simulation]") {
    faults f;
    f.directory_deletes = f.expiries = true;
    run_election("directories", f);
}

TEST_CASE("election, simulated: observers are cut off for a while", "[simulation]") { run_observers("cuts", false); }

TEST_CASE("election, simulated: observers are cut off for longer than their sessions live", "[simulation]") {
    run_observers("long cuts", true);
}

TEST_CASE("election, all schedules", "[exploration]") {
    explore_election("election", election_scenario::observers::none);
}

TEST_CASE("election, all schedules: an observer", "[exploration]") {
    explore_election("election, observed", election_scenario::observers::one);
}

}  // namespace zkasio::test
