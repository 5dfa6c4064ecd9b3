#include "unit/support/error_of.hpp"

#include <zkasio/recipe/events.hpp>

#include <string>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("one_at_a_time: a second turn is refused until the first has ended") {
    one_at_a_time reading;
    for (int i = 0; i < 2; ++i) {
        const auto again = [&] { return reading.begin("watch", "/a", "next() of this stream"); };
        const auto turn = again();
        const auto second = error_of(again);
        REQUIRE(second);
        CHECK(second->code() == errc::invalid_argument);
        CHECK(has(second->what(), "watch /a: "));
        CHECK(has(second->what(), "another coroutine awaits next() of this stream"));
        CHECK(error_of(again));  // the refusal has not ended the turn
    }
}
