#include "simulation/candidate_scenario.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

void run_candidates(const std::string& name, const faults& f, bool silences = false) {
    run_seeds("candidate, " + name, 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        candidate_scenario(s).run_at_random(f, silences);
    });
}

}  // namespace

TEST_CASE("candidate, simulated: candidates of all sorts", "[simulation]") { run_candidates("calm", {}); }

TEST_CASE("candidate, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_candidates("drops", f);
}

TEST_CASE("candidate, simulated: connections break, and the leadership is lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_candidates("drops that lose", f);
}

TEST_CASE("candidate, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_candidates("expiries", f);
}

TEST_CASE("candidate, simulated: clients are suspended, and their sessions may expire meanwhile", "[simulation]") {
    faults f;
    f.expiries = true;
    run_candidates("silences", f, true);
}

TEST_CASE("candidate, simulated: clients are cut off, for longer than their sessions live", "[simulation]") {
    run_seeds("candidate, cut off", 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        candidate_scenario(s).run_in_time();
    });
}

TEST_CASE("candidate, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_candidates("containers", f);
}

TEST_CASE("candidate, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_candidates("operator", f);
}

TEST_CASE("candidate, simulated: an operator deletes the directory", "[simulation]") {
    faults f;
    f.directory_deletes = f.expiries = true;
    run_candidates("directories", f);
}

}  // namespace zkasio::test
