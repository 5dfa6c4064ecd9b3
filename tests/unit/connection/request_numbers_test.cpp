// The C library's numbers of requests. How a process steps over those that the protocol has reserved:
// tests/faults/request_numbers_test.cpp.

#include "support/scripted_connection.hpp"

#include <zkasio/detail/connection/c_conversions.hpp>
#include <zkasio/detail/connection/request_numbers.hpp>

#include <limits>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("request numbers: how far it is to the reserved ones") {
    CHECK(requests_before_reserved(-129) == 1);
    CHECK(requests_before_reserved(-128) == 0);
    CHECK(requests_before_reserved(-1) == 0);
    CHECK(requests_before_reserved(0) == (std::int64_t{1} << 32) - 128);
    CHECK(requests_before_reserved(1'800'000'000) == 2'494'967'168);
    CHECK(requests_before_reserved(std::numeric_limits<std::int32_t>::min()) == (std::int64_t{1} << 31) - 128);
}

TEST_CASE("request numbers: the next one is found out") {
    const auto first = look_at_next_number(), second = look_at_next_number();
    REQUIRE(first);
    REQUIRE(second);
    CHECK(*second == *first + 1);
}

TEST_CASE("request numbers: the look at the next one comes between two requests, and disturbs neither") {
    connection c;
    const auto ask = [&](op_id id) {
        REQUIRE_FALSE(c.b->submit(id, get_request{"/a"}));
        return c.server.read_packet().xid;
    };
    const std::int32_t first = ask(1);
    zkasio_c_library_1& shared = *zkasio_the_c_library_1();
    shared.numbers_left = 0;
    const std::int32_t second = ask(2), third = ask(3);
    CHECK(second == first + 2);  // one is that of the look
    CHECK(third == second + 1);
    CHECK(shared.numbers_left > 1'000'000);
    for (const std::int32_t number : {first, second, third}) c.server.answer(number, -101);
    c.until_answered(3);
    CHECK(c.seen.links.size() == 1);
    for (const auto& [id, replies] : c.seen.replies) CHECK(replies.at(0).code == zk_errc::no_node);
}
