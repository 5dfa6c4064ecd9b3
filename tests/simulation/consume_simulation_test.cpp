#include "simulation/consume_scenario.hpp"

#include "support/catch.hpp"

namespace zkasio::test {
namespace {

void run_consume(const std::string& name, const consume_faults& f) {
    run_seeds("consume, " + name, 100, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        consume_scenario(s, f).run_at_random();
    });
}

}  // namespace

TEST_CASE("work_queue, simulated: consume(), with items that are due later, and dead ones", "[simulation]") {
    run_consume("calm", {});
}

TEST_CASE("work_queue, simulated: consume() while connections break", "[simulation]") {
    consume_faults f;
    f.drops = true;
    run_consume("drops", f);
}

TEST_CASE("work_queue, simulated: consume() during outages that some sessions do not survive", "[simulation]") {
    consume_faults f;
    f.drops = f.outages = true;
    run_consume("outages", f);
}

TEST_CASE("work_queue, simulated: consume() with claims that are lost with the connection", "[simulation]") {
    consume_faults f;
    f.drops = f.outages = f.drops_lose = true;
    run_consume("suspended", f);
}

TEST_CASE("work_queue, simulated: consume() while sessions end and an operator deletes claims and receipts",
          "[simulation]") {
    consume_faults f;
    f.drops = f.expiries = f.operator_deletes_claims = f.operator_deletes_receipts = true;
    run_consume("all of it", f);
}

}  // namespace zkasio::test
