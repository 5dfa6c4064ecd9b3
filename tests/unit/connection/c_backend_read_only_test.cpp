// The connection to a read-only server, through the C library, which must not learn that the server is one.

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"
#include "unit/support/connection_steps.hpp"

#include <zkasio/error.hpp>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::string_literals;

namespace {

using links = std::vector<link_state>;

constexpr std::int32_t credential_xid = -4, goodbye_type = -11;

open_params to_read_only(bool secured = false) {
    open_params p;
    p.read_only = true;
    p.secured = secured;
    return p;
}

greeting of_read_only_server() {
    greeting g;
    g.is_read_only = true;
    g.session = 0x5eed;
    return g;
}

}  // namespace

TEST_CASE("c_backend, read-only: the server's session is opened, and reads are answered") {
    connection c(to_read_only(GENERATE(false, true)));
    c.server.greets_with = of_read_only_server();
    c.connect();
    CHECK(c.server.handshake == jute_writer().number(0).long_number(0).number(10'000).long_number(0)
                                    .text(std::string(16, '\0')).boolean(true).bytes());
    CHECK(c.b->session_id() == 0x5eed);
    CHECK(c.seen.links == links{link_state::connected});
    for (op_id id = 1; id <= 3; ++id) {
        REQUIRE_FALSE(c.b->submit(id, get_request{"/a"}));
        c.b->end_batch();
        const auto asked = c.server.read_packet();
        c.server.answer(asked, jute_writer().text("old").stat({}).bytes());
        c.until_answered(id);
        CHECK(c.seen.replies[id].at(0).data == "old");
    }
    REQUIRE_FALSE(c.b->submit(4, set_request{"/a", "x"}));
    c.b->end_batch();
    c.server.answer(c.server.read_packet().xid, -119);
    c.until_answered(4);
    CHECK(c.seen.replies[4].at(0).code == zk_errc::not_read_only);
    CHECK_FALSE(c.seen.replies[4].at(0).sent);
}

TEST_CASE("c_backend, read-only: the credentials are presented before any request") {
    open_params p = to_read_only(GENERATE(false, true));
    p.auth = {{"digest", "user:password"}, {"digest", std::string(3000, 'x')}};
    connection c(p);
    c.server.greets_with = of_read_only_server();
    c.connect();
    REQUIRE_FALSE(c.b->submit(1, get_request{"/a"}));
    c.b->end_batch();
    for (const add_auth_request& a : p.auth) {
        const auto presented = c.server.read_packet();
        CHECK(presented.xid == credential_xid);
        const bool same = presented.body == jute_writer().number(0).text(a.scheme).text(a.credential).bytes();
        CHECK(same);
    }
    const auto asked = c.server.read_packet();
    c.server.answer(credential_xid, 0);
    c.server.answer(credential_xid, 0);
    c.server.answer(asked.xid, -102);
    c.until_answered(1);
    CHECK(c.seen.replies[1].at(0).code == zk_errc::no_auth);
}

TEST_CASE("c_backend, read-only: the answer to the handshake may come byte by byte") {
    connection c(to_read_only());
    take_handshake(c);
    for (const char byte : of_read_only_server().frame()) {
        CHECK(c.seen.links.empty());
        c.server.send({&byte, 1});
        c.until_read();
    }
    drive(*c.b, [&] { return c.connected(); });
}

TEST_CASE("c_backend, read-only: a server with a quorum is told goodbye, and left") {
    connection c(to_read_only(GENERATE(false, true)));
    greeting g;
    g.has_flag = GENERATE(true, false);
    take_handshake(c);
    c.server.send(g.frame());
    until_failed(c);
    CHECK(c.b->last_failure() == c.server.address() + ": has a quorum");
    CHECK(c.seen.links.empty());
    const auto said = c.server.read_packet();
    CHECK(said.type == goodbye_type);
    CHECK(said.body.empty());
}

TEST_CASE("c_backend, read-only: a server that opens no sessions says so, and the client what it needs") {
    connection c(to_read_only());
    take_handshake(c);
    c.server.send(scripted_server::reply_frame(0, -119));  // the connection stays open
    until_failed(c);
    CHECK(c.b->last_failure() ==
          c.server.address() +
              ": is read-only, and opens no sessions: its configuration needs localSessionsEnabled=true");
    CHECK(c.seen.links.empty());
}

TEST_CASE("c_backend, read-only: other answers to the handshake") {
    connection c(to_read_only());
    take_handshake(c);
    std::string why = ": not a ZooKeeper server";
    SECTION("another refusal") {
        c.server.send(scripted_server::reply_frame(0, -112));
        c.server.hang_up();
    }
    SECTION("a refusal that is cut off") {
        c.server.send(scripted_server::reply_frame(0, -119).substr(0, 19));
        c.server.hang_up();
    }
    SECTION("of an expired session") {
        greeting g = of_read_only_server();
        g.session = g.timeout_ms = 0;
        c.server.send(g.frame());
    }
    SECTION("none") {
        why = hung_up;
        c.server.hang_up();
    }
    SECTION("reset") {
        why = ": Connection reset by peer";
        c.server.reset();
    }
    SECTION("a flag that is neither") {
        std::string bytes = of_read_only_server().frame();
        bytes.back() = 2;
        c.server.send(bytes);  // the connection stays open
    }
    until_failed(c);
    CHECK(c.b->last_failure() == c.server.address() + why);
    CHECK(c.seen.links.empty());
    CHECK(c.seen.lines.empty());
}

TEST_CASE("c_backend, read-only: the server closes its connections when it has a quorum") {
    connection c(to_read_only());
    c.server.greets_with = of_read_only_server();
    c.connect();
    REQUIRE_FALSE(c.b->submit(1, get_request{"/a"}));
    c.b->end_batch();
    c.server.read_packet();
    c.server.hang_up();
    c.until_answered(1);
    CHECK(c.seen.replies[1].at(0).code == zk_errc::connection_loss);
    CHECK(c.seen.links == links{link_state::connected, link_state::disconnected});
    CHECK(c.b->last_failure() == c.server.address() + ": closed by the server");
}

TEST_CASE("c_backend: a server that only reads is left by who has not asked for one") {
    connection c{open_params()};
    take_handshake(c);
    c.server.send(of_read_only_server().frame());
    until_failed(c);
    CHECK(c.b->last_failure() == c.server.address() + ": read-only server");
    CHECK(c.seen.links.empty());
}
