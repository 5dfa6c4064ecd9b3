#include "simulation/simulated_mutex.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

void run_mutex(const std::string& name, std::uint64_t seeds, const faults& f) {
    run_seeds(name, seeds, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        queue_scenario(s, simulated_mutex).run_at_random(f);
    });
}

}  // namespace

TEST_CASE("mutex, simulated: contenders that come, wait, give up and leave", "[simulation]") {
    run_mutex("calm", 500, {});
}

TEST_CASE("mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_mutex("drops", 500, f);
}

TEST_CASE("mutex, simulated: connections break, and the locks are lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_mutex("drops that lose", 500, f);
    f.expiries = f.operator_deletes = true;
    run_mutex("drops that lose, and more", 500, f);
}

TEST_CASE("mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_mutex("expiries", 500, f);
}

TEST_CASE("mutex, simulated: servers answer handshakes and hang up, and leases end", "[simulation]") {
    faults f;
    f.drops = f.hang_ups = true;
    run_mutex("servers hang up", 200, f);
}

TEST_CASE("mutex, simulated: an ACL refuses the removal of nodes for a while", "[simulation]") {
    faults f;
    f.drops = f.closed_directories = true;
    run_mutex("closed directories", 200, f);
    f.operator_deletes = f.expiries = true;
    run_mutex("closed directories, and more", 200, f);
}

TEST_CASE("mutex, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_mutex("containers", 500, f);
}

TEST_CASE("mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_mutex("operator", 500, f);
}

}  // namespace zkasio::test
