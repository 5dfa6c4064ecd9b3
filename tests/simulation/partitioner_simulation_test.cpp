#include "simulation/partition_scenario.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

void run_partitions(const std::string& name, const partition_faults& f) {
    run_seeds("partitioner, " + name, 60, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        s.draw_version_of_servers();
        s.ensemble.hang_up_at_unknown = f.drops && s.chance(50);
        partition_scenario(s, f).run_at_random();
    });
}

}  // namespace

TEST_CASE("partitioner, simulated: members come and go", "[simulation]") { run_partitions("calm", {}); }

TEST_CASE("partitioner, simulated: connections break", "[simulation]") {
    partition_faults f;
    f.drops = true;
    run_partitions("drops", f);
}

TEST_CASE("partitioner, simulated: outages that some sessions do not survive", "[simulation]") {
    partition_faults f;
    f.drops = f.outages = true;
    run_partitions("outages", f);
}

TEST_CASE("partitioner, simulated: partitions are lost with the connection", "[simulation]") {
    partition_faults f;
    f.drops = f.outages = f.drops_lose = true;
    run_partitions("suspended", f);
}

TEST_CASE("partitioner, simulated: sessions end, and an operator deletes members", "[simulation]") {
    partition_faults f;
    f.drops = f.expiries = f.operator_deletes_members = true;
    run_partitions("expiries", f);
}

TEST_CASE("partitioner, simulated: an operator deletes locks", "[simulation]") {
    partition_faults f;
    f.drops = f.outages = f.operator_deletes_members = f.operator_deletes_locks = true;
    run_partitions("operator", f);
}

}  // namespace zkasio::test
