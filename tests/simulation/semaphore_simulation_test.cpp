#include "simulation/simulated_locks.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

const things permits_only{from_pool(1), from_pool(1), from_pool(2), from_pool(most_permits)};

void run_semaphore(const std::string& name, const faults& f) {
    run_holdings(name, permits_only, {{permits_of_pool, most_permits}}, f);
}

}  // namespace

TEST_CASE("semaphore, simulated: users of all sorts", "[simulation]") {
    run_semaphore("calm", {});
}

TEST_CASE("semaphore, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_semaphore("drops", f);
}

TEST_CASE("semaphore, simulated: connections break, and the locks are lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_semaphore("drops that lose", f);
    f.bodies = true;
    run_semaphore("drops that lose, and bodies that go on", f);
}

TEST_CASE("semaphore, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_semaphore("expiries", f);
}

TEST_CASE("semaphore, simulated: servers answer handshakes and hang up, and leases end", "[simulation]") {
    faults f;
    f.drops = f.hang_ups = true;
    run_semaphore("servers hang up", f);
}

TEST_CASE("semaphore, simulated: the directories are removed when they are empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_semaphore("containers", f);
}

TEST_CASE("semaphore, simulated: an ACL refuses the removal of nodes for a while", "[simulation]") {
    faults f;
    f.drops = f.closed_directories = true;
    run_semaphore("closed directories", f);
}

TEST_CASE("semaphore, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_semaphore("operator", f);
}

TEST_CASE("semaphore, simulated: an operator deletes directories", "[simulation]") {
    faults f;
    f.directory_deletes = true;
    run_semaphore("directories", f);
}

}  // namespace zkasio::test
