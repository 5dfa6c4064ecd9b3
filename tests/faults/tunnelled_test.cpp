// The backend through a tunnel whose channel changes nothing: what has left one socket has to arrive at the other one,
// although nobody is woken up for it any more. A heartbeat would hide that it does not.

#include "support/scripted_connection.hpp"

#include <poll.h>

#include <chrono>
#include <future>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;

TEST_CASE("a request that is submitted alone leaves at once", "[clear]") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    CHECK_FALSE(c.b->submit(1, get_request{"/a", false}));
    REQUIRE(c.server.is_asked());
    CHECK(c.server.read_packet().type == 4);
}

TEST_CASE("an answer of any size arrives by what the network and the backend ask for", "[clear]") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    op_id id = 0;
    for (std::size_t size = 190'000; size < 700'000; size += 5'000) {  // a socket pair has room for some 200 000 bytes
        CAPTURE(size);
        CHECK_FALSE(c.b->submit(++id, get_request{"/a", false}));
        REQUIRE(c.server.is_asked());
        const auto asked = c.server.read_packet();
        const auto answering =
            std::async(std::launch::async, [&c, asked, size] { c.server.answer_get(asked.xid, size); });
        // All of it has come, where the network has room for that: then its end is left in between, and nobody is woken
        // up for it.
        answering.wait_for(size < 300'000 ? 1s : 0s);
        drain_result how = drain_result::drained;
        const auto arrived = [&] { return c.seen.replies.count(id) != 0; };
        while (!arrived()) {
            const interest next = c.b->next_interest();
            pollfd p{next.descriptor, POLLIN, 0};
            if (how != drain_result::more && ::poll(&p, 1, 2000) <= 0) break;
            how = turn_of(*c.b, true, false);
        }
        answering.wait();
        REQUIRE(arrived());
        REQUIRE(c.seen.replies[id].size() == 1);
        CHECK(c.seen.replies[id].front().data.size() == size);
        c.seen.replies.clear();
    }
}
