// Sessions through the C library: how they are opened, resumed and lost, and the credentials of a connection.

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"

#include <zkasio/error.hpp>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::string_literals;

namespace {

using links = std::vector<link_state>;

constexpr std::int32_t auth_xid = -4, auth_type = 100, exists_type = 3;
const std::string no_password(16, '\0');

std::string handshake(std::int64_t last_zxid, std::int64_t session, const std::string& password) {
    return jute_writer().number(0).long_number(last_zxid).number(10'000).long_number(session).text(password)
        .boolean(false).bytes();
}

// Connects as far as a server's answer, which is not awaited.
void shake_hands(connection& c) {
    drive(*c.b, [&] { return c.b->has_socket(); });
    turn_of(*c.b, false, true);
    c.server.shake_hands();
}

void lose(connection& c) {
    c.server.hang_up();
    drive(*c.b, [&] { return !c.connected(); });
}

void check_over(connection& c, std::error_code refusal) {
    CHECK(c.b->submit(99, get_request{"/a"}) == refusal);
    CHECK(c.b->next_interest().descriptor == -1);
    CHECK(c.b->process(true, true) == drain_result::drained);
    CHECK_FALSE(c.b->has_socket());
    CHECK_FALSE(c.b->send_goodbye());
    const links before = c.seen.links;
    c.b->abort_connection();
    c.b->set_servers({{"127.0.0.2", "127.0.0.2", 1}});
    c.b->begin_batch();
    c.b->end_batch();
    c.b->close();
    CHECK(c.seen.links == before);
    CHECK_FALSE(c.seen.replies.contains(99));
}

void check_presents(connection& c, const std::string& scheme, const std::string& credential) {
    const auto presented = c.server.read_packet();
    CHECK(presented.xid == auth_xid);
    CHECK(presented.type == auth_type);
    CHECK(presented.body == jute_writer().number(0).text(scheme).text(credential).bytes());
}

}  // namespace

TEST_CASE("c_backend: a new session has the id, the password and the timeout that the server gives it") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled), 4321);
    CHECK(c.server.handshake == handshake(0, 0, no_password));
    CHECK(c.b->session_id() == 7);
    CHECK(c.b->session_timeout().count() == 4321);
    CHECK(c.b->session_password() == no_password);
    CHECK(c.b->current_server() == c.server.address());
    CHECK(c.b->has_socket());
    CHECK(c.b->last_failure().empty());
}

TEST_CASE("c_backend: a session is resumed on the next connection, where no older server is accepted") {
    open_params p;
    p.secured = GENERATE(false, true);
    connection c(p);
    c.server.greets_with.session = -0x123456789abcdef;
    c.server.greets_with.password = "0123456789\0bcdef"s;
    c.connect();
    REQUIRE_FALSE(c.b->submit(1, exists_request{"/a"}));
    c.b->end_batch();
    const auto asked = c.server.read_packet();
    c.server.send(scripted_server::reply_frame(asked.xid, -101, {}, 0x7654321000));
    c.until_answered(1);
    lose(c);
    c.server.greets_with.timeout_ms = 6000;
    c.connect();
    CHECK(c.server.handshake == handshake(0x7654321000, -0x123456789abcdef, "0123456789\0bcdef"s));
    CHECK(c.b->session_id() == -0x123456789abcdef);
    CHECK(c.b->session_password() == "0123456789\0bcdef"s);
    CHECK(c.b->session_timeout().count() == 6000);
    CHECK(c.seen.links == links{link_state::connected, link_state::disconnected, link_state::connected});
}

TEST_CASE("c_backend: a session of another process is resumed with its password") {
    open_params p;
    p.session_id = 0x1234;
    p.session_password = GENERATE("0123456789abcdef"s, "short"s, ""s);
    connection c(p);
    std::string sent = p.session_password;
    sent.resize(16);
    SECTION("it lives") {
        c.server.greets_with.session = 0x1234;
        c.connect();
        CHECK(c.server.handshake == handshake(0, 0x1234, sent));
        CHECK(c.b->session_id() == 0x1234);
    }
    SECTION("it has expired") {
        c.server.greets_with.session = c.server.greets_with.timeout_ms = 0;
        shake_hands(c);
        drive(*c.b, [&] { return !c.seen.links.empty(); });
        CHECK(c.server.handshake == handshake(0, 0x1234, sent));
        CHECK(c.seen.links == links{link_state::expired});
        check_over(c, errc::session_expired);
    }
    SECTION("the server gives another one") {
        c.server.greets_with.session = 0x1235;
        shake_hands(c);
        drive(*c.b, [&] { return !c.seen.links.empty(); });
        CHECK(c.seen.links == links{link_state::expired});
    }
}

TEST_CASE("c_backend: a session that has expired during an outage") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    lose(c);
    const std::string why = c.b->last_failure();
    c.server.greets_with.session = c.server.greets_with.timeout_ms = 0;
    shake_hands(c);
    drive(*c.b, [&] { return c.seen.links.size() == 3; });
    CHECK(c.seen.links == links{link_state::connected, link_state::disconnected, link_state::expired});
    CHECK(c.b->last_failure() == why);  // expiry is no failure of a connection
    CHECK(c.seen.lines.empty());
    check_over(c, errc::session_expired);
}

TEST_CASE("c_backend: the handshake of a server that is older than 3.4") {
    connection c{open_params()};
    c.server.greets_with.has_flag = false;
    c.connect();
    CHECK(c.b->session_id() == 7);
    lose(c);
    c.connect();
}

TEST_CASE("c_backend: credentials of the options are presented on each connection before any request") {
    open_params p;
    p.secured = GENERATE(false, true);
    p.auth = {{"digest", "user:password"}, {"other", "\0binary"s}};
    connection c(p);
    for (int connection = 0; connection < 2; ++connection) {
        c.connect();
        REQUIRE_FALSE(c.b->submit(1, exists_request{"/a"}));
        c.b->end_batch();
        check_presents(c, "digest", "user:password");
        check_presents(c, "other", "\0binary"s);
        const auto asked = c.server.read_packet();
        CHECK(asked.type == exists_type);
        c.server.answer(auth_xid, 0);
        c.server.answer(auth_xid, 0);
        c.server.answer(asked.xid, -101);
        c.until_answered(1);
        CHECK(c.seen.replies[1].size() == 1);
        c.seen.replies.clear();
        lose(c);
    }
    CHECK(c.seen.links.size() == 4);
}

TEST_CASE("c_backend: a refused credential ends the session's use, and each request under way") {
    open_params p;
    p.auth = {{"digest", "user:wrong"}};
    connection c(p);
    c.connect();
    REQUIRE_FALSE(c.b->submit(1, exists_request{"/a"}));
    REQUIRE_FALSE(c.b->submit(2, set_request{"/a", "x"}));
    c.b->end_batch();
    const bool answers_first = GENERATE(false, true);
    check_presents(c, "digest", "user:wrong");
    const auto asked = c.server.read_packet();
    c.server.read_packet();  // unread, it would make the end of the connection a reset
    if (answers_first) c.server.answer(asked.xid, -101);
    c.server.answer(auth_xid, -115);
    c.server.hang_up();
    drive(*c.b, [&] { return c.seen.links.size() == 2; });
    CHECK(c.seen.links == links{link_state::connected, link_state::auth_failed});
    REQUIRE(c.seen.replies.size() == 2);
    CHECK(c.seen.replies[1].at(0).code == (answers_first ? zk_errc::no_node : zk_errc::auth_failed));
    CHECK(c.seen.replies[1].at(0).sent == !answers_first);
    CHECK(c.seen.replies[2].at(0).code == zk_errc::auth_failed);
    CHECK(c.seen.replies[2].at(0).sent);
    check_over(c, errc::session_expired);
}

// The library closes a connection on which it cannot send, and reads nothing more from it.
TEST_CASE("c_backend: a refused credential is told, too, if it is unread when the next request cannot be sent") {
    open_params p;
    p.secured = GENERATE(false, true);
    const bool added = GENERATE(false, true), answers_first = GENERATE(false, true);
    if (!added) p.auth = {{"digest", "user:wrong"}};
    connection c(p);
    c.connect();
    const op_id first = 1;
    if (added)
        REQUIRE_FALSE(c.b->submit(first, add_auth_request{"digest", "user:wrong"}));
    else
        REQUIRE_FALSE(c.b->submit(first, exists_request{"/"}));
    c.b->end_batch();
    check_presents(c, "digest", "user:wrong");
    c.server.read_packet();
    const std::string before = answers_first ? scripted_server::reply_frame(-2, 0) : std::string();  // to a ping
    c.server.send(before + scripted_server::reply_frame(auth_xid, -115));
    c.reset_unnoticed();
    for (op_id next = 2; next < 4; ++next) c.b->submit(next, set_request{"/a", "x"});
    c.b->end_batch();
    drive(*c.b, [&] { return c.seen.links.size() == 2; });
    CHECK(c.seen.links == links{link_state::connected, link_state::auth_failed});
    REQUIRE(c.seen.replies[first].size() == 1);
    CHECK(c.seen.replies[first][0].code == zk_errc::auth_failed);
    CHECK(c.seen.replies[first][0].sent);
    check_over(c, errc::session_expired);
}

TEST_CASE("c_backend: what else is unread when a request cannot be sent refuses no credential") {
    open_params p;
    p.auth = {{"digest", "user:password"}};
    connection c(p);
    c.connect();
    check_presents(c, "digest", "user:password");
    const std::string refusal = scripted_server::reply_frame(auth_xid, -115);
    const std::string unread = GENERATE_COPY(
        std::string(), scripted_server::reply_frame(auth_xid, 0), refusal.substr(1), refusal + "x",
        scripted_server::reply_frame(auth_xid, -4), scripted_server::reply_frame(-2, -115));
    c.server.send(unread);
    c.reset_unnoticed();
    c.b->submit(1, set_request{"/a", "x"});
    c.b->submit(2, set_request{"/a", "x"});
    c.b->end_batch();
    drive(*c.b, [&] { return !c.connected(); });
    CHECK(c.seen.links == links{link_state::connected, link_state::disconnected});
    c.connect();
    check_presents(c, "digest", "user:password");
}

TEST_CASE("c_backend: a credential is accepted if the request behind it is answered") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    const int answer = GENERATE(0, -101, -102, -4);
    REQUIRE_FALSE(c.b->submit(1, add_auth_request{"digest", "user:password"}));
    c.b->end_batch();
    check_presents(c, "digest", "user:password");
    const auto asked = c.server.read_packet();
    CHECK(asked.type == exists_type);
    CHECK(asked.body == jute_writer().text("/").boolean(false).bytes());
    c.server.answer(auth_xid, 0);
    c.until_read();
    CHECK(c.seen.replies.empty());
    if (answer == 0)
        c.server.answer(asked, jute_writer().stat({}).bytes());
    else
        c.server.answer(asked.xid, answer);
    c.until_answered(1);
    const std::error_code expected = answer == -4 ? make_error_code(zk_errc::connection_loss) : std::error_code();
    CHECK(c.seen.replies[1].at(0).code == expected);
    lose(c);
    c.connect();
    check_presents(c, "digest", "user:password");
    REQUIRE_FALSE(c.b->submit(2, [] {
        add_auth_request known{"digest", "user:password"};
        known.known = true;
        return known;
    }()));
    c.b->end_batch();
    CHECK(c.server.read_packet().type == exists_type);
}

TEST_CASE("c_backend: a credential that is added and refused") {
    connection c;
    REQUIRE_FALSE(c.b->submit(1, add_auth_request{"digest", "user:wrong"}));
    c.b->end_batch();
    check_presents(c, "digest", "user:wrong");
    c.server.read_packet();
    c.server.answer(auth_xid, -115);
    c.server.hang_up();
    drive(*c.b, [&] { return c.seen.links.size() == 2; });
    CHECK(c.seen.links.back() == link_state::auth_failed);
    CHECK(c.seen.replies[1].at(0).code == zk_errc::auth_failed);
}
