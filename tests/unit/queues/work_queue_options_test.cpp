#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <chrono>

namespace work_queue_options_tests {

using namespace zkasio;
using namespace std::chrono_literals;

TEST_CASE("work_queue: pauses after failures double up to a limit", "[work_queue]") {
    const consume_options usual;
    CHECK(usual.pause_after(1) == 1s);
    CHECK(usual.pause_after(2) == 2s);
    CHECK(usual.pause_after(6) == 32s);
    CHECK(usual.pause_after(7) == 60s);
    CHECK(usual.pause_after(2'000'000'000) == 60s);
    CHECK(consume_options().pause(0ms).pause_after(2'000'000'000) == 0ms);
    CHECK(consume_options().pause(5s, 3s).pause_after(1) == 3s);
}

TEST_CASE("work_queue: options out of their ranges are refused", "[work_queue]") {
    CHECK_THROWS_AS(put_options().delay(-1ms), error);
    CHECK_THROWS_AS(put_options().delay(std::chrono::hours(24 * 367 * 100)), error);
    CHECK_THROWS_AS(work_queue_options().most_deliveries(-1), error);
    CHECK_THROWS_AS(consume_options().parallel(0), error);
    CHECK_THROWS_AS(consume_options().pause(-1ms), error);
    CHECK_THROWS_AS(consume_options().pause(1ms, -1ms), error);
    CHECK(put_options().priority(999).delay(1h).priority() == 999);
    CHECK_FALSE(put_options().priority());
}

TEST_CASE("work_queue: layouts", "[work_queue]") {
    CHECK(work_queue_options().layout().kind() == queue_kind::kazoo_locking);
    CHECK(queue_layout::curator("/locks").lock_path() == "/locks");
    CHECK(queue_layout::curator_id().lock_path().empty());
    CHECK_THROWS_AS(queue_layout::curator("locks"), error);
    CHECK_THROWS_AS(queue_layout::curator_priority("/locks/"), error);
}

}  // namespace work_queue_options_tests
