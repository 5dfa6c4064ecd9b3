// What the C library does as time passes, in virtual time.

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"

#include <zkasio/error.hpp>
#include <zkasio/testing/detail/virtual_clock.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;
using testing_detail::virtual_clock;

namespace {

using links = std::vector<link_state>;

constexpr std::int32_t ping_xid = -2, ping_type = 11;
constexpr int timeout_ms = 9000;

}  // namespace

TEST_CASE("c_backend: a connection that is idle for a third of the session timeout carries a ping, told to nobody") {
    virtual_clock time;
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled), timeout_ms);
    for (int i = 0; i < 3; ++i) {
        c.until_read();
        CHECK(c.b->next_interest().timeout <= 3000ms);
        time.pass(2990ms);
        c.until_read();
        CHECK(c.server.bytes_received() == 0);
        time.pass(20ms);
        const auto ping = c.server.read_packet();
        CHECK(ping.xid == ping_xid);
        CHECK(ping.type == ping_type);
        c.server.answer(ping_xid, 0);
    }
    c.until_read();
    CHECK(c.seen.links == links{link_state::connected});
    CHECK(c.seen.replies.empty());
    CHECK(c.seen.events.empty());
}

TEST_CASE("c_backend: a connection over which nothing comes for two thirds of the session timeout is given up") {
    virtual_clock time;
    connection c(connection::way::direct, timeout_ms);
    REQUIRE_FALSE(c.b->submit(1, get_request{"/a"}));
    c.b->end_batch();
    c.server.read_packet();
    time.pass(5990ms);
    c.until_read();
    CHECK(c.connected());
    CHECK(c.server.bytes_received() == 0);  // no ping while a request is under way
    time.pass(20ms);
    c.until_answered(1);
    CHECK(c.seen.replies[1].at(0).code == zk_errc::operation_timeout);
    CHECK(c.seen.replies[1].at(0).sent);
    CHECK(c.seen.links == links{link_state::connected, link_state::disconnected});
    CHECK(c.b->last_failure() == c.server.address() + ": no answer for two thirds of the session timeout");
    c.check_next_connection();
}

TEST_CASE("c_backend: an answer that has come in time counts, even if it is read late") {
    virtual_clock time;
    connection c(connection::way::direct, timeout_ms);
    REQUIRE_FALSE(c.b->submit(1, get_request{"/a"}));
    c.b->end_batch();
    c.server.answer(c.server.read_packet().xid, -101);
    pollfd answer{c.b->next_interest().descriptor, POLLIN, 0};
    REQUIRE(::poll(&answer, 1, 20'000) == 1);
    time.pass(7s);
    c.b->process(true, false);  // as the link does before it asks for timeouts
    CHECK(c.seen.replies[1].at(0).code == zk_errc::no_node);
    c.until_read();
    CHECK(c.connected());
}

TEST_CASE("c_backend: a handshake that is not answered for two thirds of the wanted timeout is given up") {
    virtual_clock time;
    connection c{open_params()};
    c.b->next_interest();
    turn_of(*c.b, false, true);
    c.server.take_handshake();
    time.pass(6660ms);
    c.until_read();
    CHECK(c.b->last_failure().empty());
    time.pass(10ms);
    drive(*c.b, [&] { return !c.b->last_failure().empty(); });
    CHECK(c.b->last_failure() ==
          c.server.address() +
              ": accepts the connection and does not answer (not a ZooKeeper server, or one that hangs)");
    CHECK(c.seen.links.empty());
    c.connect();
}
