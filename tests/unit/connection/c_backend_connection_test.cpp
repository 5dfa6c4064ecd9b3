// Connections of the C library: what a peer may do instead of answering, at which point the connection ends, and what
// is told of it.

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"
#include "unit/support/connection_steps.hpp"

#include <zkasio/error.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::string_literals;

namespace {

using links = std::vector<link_state>;

const std::string no_zookeeper = ": not a ZooKeeper server";

// A port at which nobody listens, for as long as this object exists.
class nobody {
public:
    nobody() { socket_.bind(asio::ip::tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)); }
    server_address where() const { return {"127.0.0.1", "127.0.0.1", socket_.local_endpoint().port()}; }

private:
    asio::io_context io_;
    asio::ip::tcp::socket socket_{io_, asio::ip::tcp::v4()};
};

std::string frame(std::int32_t length, const jute_writer& body) {
    return jute_writer().number(length).bytes() + body.bytes();
}

}  // namespace

TEST_CASE("c_backend: a server that refuses the connection") {
    const nobody server;
    open_params p;
    p.servers = {server.where()};
    connection c(p);
    until_failed(c);
    CHECK(c.b->last_failure() == endpoint_of(server.where()) + ": Connection refused");
    CHECK(c.seen.links.empty());
    CHECK(c.seen.lines.empty());
}

TEST_CASE("c_backend: a peer that hangs up at any byte of its answer to the handshake is no server") {
    const std::string answer = greeting().frame();
    const bool by_reset = GENERATE(false, true);
    for (std::size_t n = 0; n < answer.size(); ++n) {
        INFO(n << " bytes, " << (by_reset ? "reset" : "closed"));
        connection c{open_params()};
        take_handshake(c);
        c.server.send(answer.substr(0, n));
        by_reset ? c.server.reset() : c.server.hang_up();
        until_failed(c);
        const std::string expected = n > 0 ? no_zookeeper : by_reset ? ": Connection reset by peer" : hung_up;
        CHECK(c.b->last_failure() == c.server.address() + expected);
        CHECK(c.seen.links.empty());
        c.connect();
        CHECK(c.b->last_failure().empty());
    }
}

TEST_CASE("c_backend: the answer to a handshake may come byte by byte") {
    connection c{open_params()};
    take_handshake(c);
    CHECK(c.b->handshake_sent());
    CHECK(c.b->accepted());
    const std::string why = c.b->attempt();
    CHECK(why == c.server.address() +
                     ": accepts the connection and does not answer (not a ZooKeeper server, or one that hangs)");
    for (const char byte : greeting().frame()) {
        CHECK(c.seen.links.empty());
        c.server.send({&byte, 1});
        c.until_read();
    }
    drive(*c.b, [&] { return c.connected(); });
    CHECK_FALSE(c.b->handshake_sent());
    CHECK(c.b->session_id() == 7);
}

TEST_CASE("c_backend: an answer to the handshake that no ZooKeeper gives is not believed") {
    struct wrong {
        const char* name;
        std::string bytes, why = no_zookeeper;
    };
    const auto with = [](auto change) {
        greeting g;
        change(g);
        return g.frame();
    };
    const std::string good = greeting().frame();
    const std::vector<wrong> all{
        {"another version", with([](greeting& g) { g.version = 1; })},
        {"no session", with([](greeting& g) { g.session = g.timeout_ms = 0; })},
        {"a session without a timeout", with([](greeting& g) { g.timeout_ms = 0; })},
        {"a timeout without a session", with([](greeting& g) { g.session = 0; })},
        {"a negative timeout", with([](greeting& g) { g.timeout_ms = -1; })},
        {"a timeout of more than a day", with([](greeting& g) { g.timeout_ms = 24 * 3600 * 1000 + 1; })},
        {"a password of 15 bytes", with([](greeting& g) { g.password.resize(15); }) + "x"},
        {"a password of 17 bytes", with([](greeting& g) { g.password.resize(17); })},
        {"a password of 17 bytes in the usual frame",
         good.substr(0, 20) + jute_writer().number(17).bytes() + good.substr(24)},
        {"a byte too many, of an old server", with([](greeting& g) { g.has_flag = false; }) + "x"},
        {"a longer frame", frame(38, jute_writer()) + good.substr(4) + "x"},
        {"a shorter frame", frame(35, jute_writer()) + good.substr(4)},
        {"an answer to a request", scripted_server::reply_frame(1, -101, std::string(100, '\0'))},
        {"another protocol", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
        {"zeros", std::string(64, '\0')},
        {"ones", std::string(64, '\xff')},
        {"a TLS alert", "\x15\x03\x01\0\x02\x02\x46"s, ": expects TLS"},
        {"a TLS alert, and more", "\x15\x03\x03\0\x02\x02\x46"s + std::string(60, 'x'), ": expects TLS"},
    };
    for (const wrong& w : all) {
        INFO(w.name);
        connection c{open_params()};
        take_handshake(c);
        c.server.send(w.bytes);
        if (w.bytes.size() < 40) c.server.hang_up();
        until_failed(c);
        CHECK(c.b->last_failure() == c.server.address() + w.why);
        CHECK(c.seen.links.empty());
        CHECK(c.b->session_id() == 0);
        c.connect();
        CHECK(c.server.handshake == jute_writer().number(0).long_number(0).number(10'000).long_number(0)
                                        .text(std::string(16, '\0')).boolean(false).bytes());
    }
}

TEST_CASE("c_backend: a peer that is no ZooKeeper cannot end a session that is to be resumed") {
    connection c;
    c.server.hang_up();
    drive(*c.b, [&] { return !c.connected(); });
    const std::string bytes = GENERATE(std::string(64, '\0'), std::string(64, '\xff'),
                                       "HTTP/1.1 400"s + std::string(60, ' '));
    take_handshake(c);
    c.server.send(bytes);
    const std::string why = c.b->last_failure();
    drive(*c.b, [&] { return c.b->last_failure() != why; });
    CHECK(c.b->last_failure() == c.server.address() + no_zookeeper);
    c.connect();
    CHECK(c.b->session_id() == 7);
    CHECK(c.seen.links == links{link_state::connected, link_state::disconnected, link_state::connected});
}

TEST_CASE("c_backend: a connection that is lost while nothing is under way says why") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    std::string why = ": closed by the server";
    SECTION("closed") { c.server.hang_up(); }
    SECTION("closed within an event") {
        c.server.send(scripted_server::reply_frame(-1, 0, "1234").substr(0, 20));
        c.server.hang_up();
    }
    SECTION("reset") {
        why = ": Connection reset by peer";
        c.server.reset();
    }
    drive(*c.b, [&] { return !c.connected(); });
    CHECK(c.b->last_failure() == c.server.address() + why);
    CHECK(c.seen.links == links{link_state::connected, link_state::disconnected});
    CHECK(c.seen.lines.empty());
    c.check_next_connection();
    CHECK(c.b->last_failure().empty());
}

TEST_CASE("c_backend: answers that are out of step end the connection") {
    connection c;
    REQUIRE_FALSE(c.b->submit(1, get_request{"/a"}));
    REQUIRE_FALSE(c.b->submit(2, get_request{"/b"}));
    c.b->end_batch();
    c.server.read_packet();
    const auto second = c.server.read_packet();
    c.server.answer(second.xid, -101);
    c.until_answered(2);
    CHECK(c.b->last_failure() == c.server.address() + ": its answers are out of step with the requests");
    CHECK(c.seen.replies[1].at(0).code == zk_errc::runtime_inconsistency);
    CHECK(c.seen.replies[2].at(0).code == zk_errc::runtime_inconsistency);
    CHECK(c.seen.replies[1].at(0).sent);
    CHECK(c.seen.links.back() == link_state::disconnected);
    c.check_next_connection();
}

TEST_CASE("c_backend: an attempt, or a connection, that is aborted ends at once, and the next one begins") {
    connection c{open_params()};
    SECTION("before the handshake") {
        c.b->next_interest();
        CHECK(c.b->has_socket());
        CHECK_FALSE(c.b->accepted());
        c.b->abort_connection();
        CHECK(c.b->last_failure() == c.server.address() + ": no answer to the attempt to connect");
    }
    SECTION("after the handshake") {
        take_handshake(c);
        c.b->abort_connection();
        CHECK(c.b->last_failure().find("accepts the connection and does not answer") != std::string::npos);
    }
    SECTION("with an answer that waits to be read") {
        take_handshake(c);
        c.server.send(greeting().frame());
        c.b->abort_connection();
        CHECK(c.seen.links.empty());
    }
    SECTION("connected, with an answer that waits to be read") {
        c.connect();
        REQUIRE_FALSE(c.b->submit(1, get_request{"/a"}));
        c.b->end_batch();
        c.server.answer(c.server.read_packet().xid, -101);
        c.b->abort_connection();
        CHECK(c.seen.replies[1].at(0).code == zk_errc::connection_loss);
        CHECK(c.seen.links == links{link_state::connected, link_state::disconnected});
    }
    CHECK_FALSE(c.b->has_socket());
    CHECK_FALSE(c.b->handshake_sent());
    CHECK_FALSE(c.connected());
    c.check_next_connection();
}
