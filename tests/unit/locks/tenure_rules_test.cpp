#include "support/catch.hpp"

#include <zkasio/locks/detail/cohort/tenure_rules.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

using namespace std::chrono_literals;
using namespace zkasio::lock_detail;
using enum other_contenders;

namespace {

tenure_step step(other_contenders others, std::uint64_t turns, std::chrono::nanoseconds age, bool has_waiters = true,
                 bool asked_back = false) {
    tenure_limits limits;
    limits.turns = 5;
    limits.tenure = 10ms;
    limits.linger = 1s;
    tenure t;
    t.others = others;
    t.turns = turns;
    t.age = age;
    t.has_waiters = has_waiters;
    t.asked_back = asked_back;
    return next_tenure_step(limits, t);
}

}  // namespace

TEST_CASE("tenure_rules: within the limits, a cohort takes its turns, whoever waits (T1)", "[cohort]") {
    for (const auto others : {unknown, expected, none, waiting}) {
        CHECK(step(others, 0, 0ms) == tenure_step::grant);
        CHECK(step(others, 4, 9ms) == tenure_step::grant);
        CHECK(step(others, 0, 1h) == tenure_step::grant);  // one turn at least
    }
}

TEST_CASE("tenure_rules: beyond a limit, a tenure ends if another contender waits (T1, T2)", "[cohort]") {
    for (const auto& [turns, age] : {std::pair(5, 0ms), std::pair(1, 10ms), std::pair(100, 100ms)}) {
        const auto n = static_cast<std::uint64_t>(turns);
        CHECK(step(waiting, n, age) == tenure_step::queue_again);
        CHECK(step(expected, n, age) == tenure_step::queue_again);
        CHECK(step(none, n, age) == tenure_step::grant);
        CHECK(step(unknown, n, age) == tenure_step::wait_for_look);
    }
}

TEST_CASE("tenure_rules: an idle place is kept unless another contender waits or has tried (T3, T4, T6)", "[cohort]") {
    for (const auto others : {unknown, expected, none}) {
        CHECK(step(others, 1, 0ms, false) == tenure_step::linger);
        CHECK(step(others, 100, 1h, false) == tenure_step::linger);
    }
    CHECK(step(waiting, 1, 0ms, false) == tenure_step::give_back);
    tenure tried;  // T6
    tried.tried = true;
    CHECK(next_tenure_step(tenure_limits(), tried) == tenure_step::give_back);
    tried.has_waiters = true;
    CHECK(next_tenure_step(tenure_limits(), tried) == tenure_step::grant);
    tenure_limits at_once;
    at_once.linger = 0s;
    CHECK(next_tenure_step(at_once, {}) == tenure_step::give_back);
}

TEST_CASE("tenure_rules: a place that is asked back goes with the end of the turn (T5)", "[cohort]") {
    CHECK(step(none, 1, 0ms, true, true) == tenure_step::queue_again);
    CHECK(step(none, 1, 0ms, false, true) == tenure_step::give_back);
}

TEST_CASE("tenure_rules: a cohort looks for others as soon as a second turn is wanted", "[cohort]") {
    tenure t;
    t.has_waiters = true;
    CHECK_FALSE(must_look(t));
    t.turns = 1;
    CHECK(must_look(t));
    t.has_waiters = false;
    CHECK_FALSE(must_look(t));
    t.has_waiters = true;
    for (const auto known : {expected, none, waiting}) {
        t.others = known;
        CHECK_FALSE(must_look(t));
    }
}

TEST_CASE("tenure_rules: an attempt is not refused for a guess (T2)", "[cohort]") {
    tenure_limits limits;
    tenure t;
    t.turns = 1;
    t.age = 1h;
    t.has_waiters = t.first_tries = true;
    t.others = expected;
    CHECK(next_tenure_step(limits, t) == tenure_step::wait_for_look);
    CHECK(must_look(t));
    t.others = waiting;
    CHECK(next_tenure_step(limits, t) == tenure_step::queue_again);
    t.others = none;
    CHECK(next_tenure_step(limits, t) == tenure_step::grant);
    t.others = expected;
    t.first_tries = false;
    CHECK(next_tenure_step(limits, t) == tenure_step::queue_again);
    CHECK_FALSE(must_look(t));
}

TEST_CASE("tenure_rules: how long an idle place is still kept, for the longest times as well (T4)", "[cohort]") {
    tenure_limits limits;
    CHECK(linger_left(limits, 0ns) == 1s);
    CHECK(linger_left(limits, 400ms) == 600ms);
    CHECK(linger_left(limits, 2s) == -1s);
    limits.linger = std::chrono::nanoseconds::max();
    CHECK(linger_left(limits, -1ns) == std::chrono::nanoseconds::max());
    CHECK(linger_left(limits, 1ns) == std::chrono::nanoseconds::max() - 1ns);
}
