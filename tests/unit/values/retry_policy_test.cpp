#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/retry_policy.hpp>

#include <chrono>
#include <optional>

using namespace zkasio;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

using maybe = std::optional<retry_policy::duration>;

constexpr double smallest = 0.0, middle = 0.5;
constexpr double largest = 1.0 - 1e-9;

}  // namespace

TEST_CASE("retry: exponential doubles up to its cap, and ends", "[retry]") {
    const auto policy = retry_policy::exponential(50ms, 300ms, 5);
    CHECK(policy.pause_before(0, 0ms, middle) == maybe(50ms));
    CHECK(policy.pause_before(1, 0ms, middle) == maybe(100ms));
    CHECK(policy.pause_before(2, 0ms, middle) == maybe(200ms));
    CHECK(policy.pause_before(3, 0ms, middle) == maybe(300ms));
    CHECK(policy.pause_before(4, 1h, middle) == maybe(300ms));  // time does not matter
    CHECK(policy.pause_before(5, 0ms, middle) == std::nullopt);
    CHECK(policy.pause_before(6, 0ms, middle) == std::nullopt);
}

TEST_CASE("retry: the random factor is from a half to one and a half", "[retry]") {
    const auto policy = retry_policy::exponential(100ms, 1000ms, 100);
    CHECK(policy.pause_before(0, 0ms, smallest) == maybe(50ms));
    CHECK(policy.pause_before(0, 0ms, largest) == maybe(149ms));
    CHECK(policy.pause_before(50, 0ms, smallest) == maybe(500ms));
    CHECK(policy.pause_before(50, 0ms, largest) == maybe(1499ms));
    for (int attempt = 0; attempt < 100; ++attempt)
        for (double random = 0; random < 1; random += 0.01) {
            const maybe p = policy.pause_before(attempt, 0ms, random);
            REQUIRE(p);
            REQUIRE(*p >= 50ms);
            REQUIRE(*p < 1500ms);
        }
}

TEST_CASE("retry: defaults", "[retry]") {
    const auto policy = retry_policy::exponential();
    CHECK(policy.pause_before(0, 0ms, middle) == maybe(50ms));
    CHECK(policy.pause_before(7, 0ms, middle) == maybe(2000ms));
    CHECK(policy.pause_before(8, 0ms, middle) == std::nullopt);
}

TEST_CASE("retry: until_elapsed ends at its limit, and does not sleep beyond it", "[retry]") {
    const auto policy = retry_policy::until_elapsed(1s, 400ms, 800ms);
    CHECK(policy.pause_before(0, 0ms, middle) == maybe(400ms));
    CHECK(policy.pause_before(1, 100ms, middle) == maybe(800ms));
    CHECK(policy.pause_before(1, 900ms, middle) == maybe(100ms));
    CHECK(policy.pause_before(1, 999ms, middle) == maybe(1ms));
    CHECK(policy.pause_before(1, 1000ms, middle) == std::nullopt);
    CHECK(policy.pause_before(0, 2s, middle) == std::nullopt);
    CHECK(policy.pause_before(1'000'000, 0ms, middle) == maybe(800ms));
}

TEST_CASE("retry: n_times pauses evenly", "[retry]") {
    const auto policy = retry_policy::n_times(2, 70ms);
    for (const double random : {smallest, middle, largest}) {
        CHECK(policy.pause_before(0, 0ms, random) == maybe(70ms));
        CHECK(policy.pause_before(1, 1h, random) == maybe(70ms));
        CHECK(policy.pause_before(2, 0ms, random) == std::nullopt);
    }
    CHECK(retry_policy::n_times(1).pause_before(0, 0ms, middle) == maybe(100ms));
}

TEST_CASE("retry: forever and never", "[retry]") {
    const auto forever = retry_policy::forever(10ms, 20ms);
    CHECK(forever.pause_before(0, 0ms, middle) == maybe(10ms));
    CHECK(forever.pause_before(1'000'000'000, 24h * 365 * 100, middle) == maybe(20ms));
    CHECK(retry_policy::never().pause_before(0, 0ms, middle) == std::nullopt);
}

TEST_CASE("retry: what is not given up pauses for ever, at most as long as the cap", "[retry]") {
    CHECK(retry_policy::exponential(50ms, 300ms, 2).pause(0, middle) == 50ms);
    CHECK(retry_policy::exponential(50ms, 300ms, 2).pause(1'000'000, middle) == 300ms);
    CHECK(retry_policy::until_elapsed(1ms, 400ms, 800ms).pause(1, middle) == 800ms);
    CHECK(retry_policy::n_times(1, 7ms).pause(99, largest) == 7ms);
    CHECK(retry_policy::never().pause(0, middle) == 50ms);
    CHECK(retry_policy::never().pause(99, middle) == 2000ms);
}

TEST_CASE("retry: what is not given up pauses for 1 ms at least, and for a day at most", "[retry]") {
    for (const double random : {smallest, middle, largest}) {
        CHECK(retry_policy::forever(0ms, 0ms).pause(99, random) >= 1ms);
        CHECK(retry_policy::exponential(1ms, 1ms).pause(0, random) >= 1ms);
        CHECK(retry_policy::n_times(3, 0ms).pause(0, random) >= 1ms);
        CHECK(retry_policy::n_times(3, 0ms).pause_before(0, 0ms, random) >= maybe(1ms));
        CHECK(retry_policy::forever(1ms, milliseconds::max()).pause(1000, random) >= 12h);
        CHECK(retry_policy::forever(1ms, milliseconds::max()).pause(1000, random) <= 24h);
        CHECK(retry_policy::exponential(milliseconds::max(), milliseconds::max()).pause(0, random) <= 24h);
        CHECK(retry_policy::n_times(1, milliseconds::max()).pause(0, random) == 24h);
        CHECK(retry_policy::until_elapsed(milliseconds::max()).pause_before(0, 24h, random) > maybe(0ms));
    }
}

TEST_CASE("retry: durations and numbers that are negative are refused", "[retry]") {
    CHECK_THROWS_AS(retry_policy::exponential(-1ms), error);
    CHECK_THROWS_AS(retry_policy::exponential(1ms, -1ms), error);
    CHECK_THROWS_AS(retry_policy::exponential(1ms, 1ms, -1), error);
    CHECK_THROWS_AS(retry_policy::until_elapsed(-1ms), error);
    CHECK_THROWS_AS(retry_policy::n_times(-1), error);
    CHECK_THROWS_AS(retry_policy::n_times(1, -1ms), error);
    CHECK_THROWS_AS(retry_policy::forever(milliseconds::min()), error);
}
