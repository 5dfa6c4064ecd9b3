// The C library keeps what it could not send for the next connection, and sends it there: requests whose callers have
// got an error are executed, and the rest of a half-sent one is taken for a packet. Over a server that is scripted byte
// by byte.

#include "support/scripted_connection.hpp"

#include <zkasio/testing/detail/virtual_clock.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <chrono>
#include <vector>

namespace half_sent_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using asio::ip::tcp;

namespace {

const std::error_code not_now = std::make_error_code(std::errc::resource_unavailable_try_again);

// More than the buffers of two sockets hold: it is half sent.
request large() { return set_request{"/a", std::string(16'000'000, 'x'), any_version}; }

}  // namespace

TEST_CASE("what could not be sent fails, what was not tried is refused, and neither reaches the next connection") {
    connection c;
    const bool batch = GENERATE(false, true);
    INFO((batch ? "a batch" : "one by one"));
    // The peer is gone, and nobody has noticed: the first send fails inside of the library.
    c.reset_unnoticed();
    if (batch) c.b->begin_batch();
    CHECK_FALSE(c.b->submit(1, get_request{"/a", false}));
    for (const op_id id : {2U, 3U}) CHECK(c.b->submit(id, set_request{"/a", "x", any_version}) == not_now);
    CHECK(c.seen.replies.empty());  // not from within submit()
    c.b->end_batch();
    REQUIRE(c.seen.replies.size() == 1);
    REQUIRE(c.seen.replies[1].size() == 1);
    CHECK(c.seen.replies[1][0].code == zk_errc::connection_loss);
    CHECK(c.seen.replies[1][0].sent);  // nobody can know
    CHECK(c.seen.links == std::vector<link_state>{link_state::connected, link_state::disconnected});
    CHECK(c.b->last_failure() == c.server.address() + ": Connection reset by peer");
    c.check_next_connection();
    CHECK(c.seen.replies.size() == 1);
}

TEST_CASE("a credential that a lost connection has not taken is presented on the next one") {
    add_auth_request auth{"digest", "a:b"};
    const auto present = [&](backend& b) {
        const std::error_code refused = b.submit(2, auth);
        if (!refused) auth.known = true;  // as the core does when the answer is lost
        return refused;
    };
    const auto check_presented = [&](connection& c) {
        CHECK(c.seen.links.back() == link_state::disconnected);
        c.connect();
        CHECK_FALSE(present(*c.b));
        CHECK(c.server.read_packet().xid == -4);
    };
    SECTION("lost by a request before it") {
        connection c;
        c.reset_unnoticed();
        CHECK_FALSE(c.b->submit(1, get_request{"/a", false}));
        CHECK(present(*c.b) == not_now);
        c.b->end_batch();
        check_presented(c);
    }
    SECTION("the library notices, when it is asked, that nothing has come for two thirds of the timeout") {
        testing_detail::virtual_clock time;
        connection c(connection::way::direct, 1500);
        CHECK_FALSE(c.b->submit(1, get_request{"/a", false}));
        time.pass(std::chrono::milliseconds(1100));
        CHECK(present(*c.b) == not_now);
        c.b->end_batch();
        CHECK(c.seen.replies[1].at(0).code == zk_errc::operation_timeout);
        check_presented(c);
    }
}

TEST_CASE("a goodbye counts as answered only when the server has said so") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    REQUIRE_FALSE(c.b->submit(1, get_request{"/a", false}));
    c.b->end_batch();
    const auto under_way = c.server.read_packet();
    REQUIRE(c.b->send_goodbye());
    const auto said = c.server.read_packet();
    CHECK(said.type == -11);
    CHECK(c.b->answer_to_goodbye() == goodbye_result::none_yet);
    auto expected = goodbye_result::connection_lost;
    SECTION("answered") {
        c.server.answer(under_way.xid, -101);
        c.server.answer(said.xid, 0);
        c.server.hang_up();
        expected = goodbye_result::session_over;
    }
    SECTION("a server that stops, or has lost its leader") { c.server.hang_up(); }
    SECTION("reset") { c.server.reset(); }
    SECTION("another removal's answer is the last") {
        c.server.answer(under_way.xid, 0);
        c.server.hang_up();
    }
    SECTION("refused") {
        c.server.answer(said.xid, -118);
        c.server.hang_up();
    }
    SECTION("cut off") {
        c.server.answer(said.xid, 0, 19);
        c.server.hang_up();
    }
    auto seen = goodbye_result::none_yet;
    while (seen == goodbye_result::none_yet) seen = c.b->answer_to_goodbye();  // over the loopback: at once
    CHECK(seen == expected);
}

TEST_CASE("a handshake whose last byte comes alone") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    c.b->abort_connection();
    c.server.before_last_byte = [&] {
        for (int turn = 0; turn < 3; ++turn) {
            const interest next = c.b->next_interest();
            pollfd p{next.descriptor, POLLIN, 0};
            ::poll(&p, 1, 5);
            turn_of(*c.b, p.revents != 0, false);
        }
    };
    c.connect();
}

TEST_CASE(
    "a server that is added takes some of the clients from the others, and nothing from the program's random numbers") {
    ::srand48(1);
    const double first = ::drand48();
    bool left = false, stayed = false;
    for (int i = 0; i < 60 && !(left && stayed); ++i) {
        connection c;
        ::srand48(1);
        c.b->set_servers({c.server.where(), {"127.0.0.2", "127.0.0.2", 1}});
        CHECK(::drand48() == first);
        (c.seen.links.back() == link_state::connected ? stayed : left) = true;
    }
    CHECK(left);
    CHECK(stayed);
}

TEST_CASE("a connection that is left for another list of servers says why") {
    connection c;
    SECTION("the server is in it: the library compares no ports, and is made to start over") {
        c.b->set_servers({{"127.0.0.1", "127.0.0.1", 1}, c.server.where()});
        CHECK(c.b->last_failure() == c.server.address() + ": left, for the list of servers has changed");
    }
    SECTION("the server is not in it") {
        c.b->set_servers({{"127.0.0.2", "127.0.0.2", 1}});
        CHECK(c.b->last_failure() == c.server.address() + ": left, for it is not in the new list of servers");
    }
    CHECK(c.seen.links.back() == link_state::disconnected);
}

TEST_CASE("a half-sent request is not continued on the next connection") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    const bool noticed_by_another = GENERATE(true, false);
    INFO("noticed by " << (noticed_by_another ? "a request behind it" : "the library"));
    CHECK_FALSE(c.b->submit(1, large()));
    CHECK(c.b->next_interest().write);  // the rest of it waits
    c.server.reset();
    if (noticed_by_another) CHECK_FALSE(c.b->submit(2, get_request{"/a", false}));
    drive(*c.b, [&] { return c.seen.replies.size() == (noticed_by_another ? 2 : 1); });
    for (const auto& [id, replies] : c.seen.replies) {
        REQUIRE(replies.size() == 1);
        CHECK(replies[0].code == zk_errc::connection_loss);
    }
    c.check_next_connection();
}

TEST_CASE("a batch whose connection is lost leaves other sockets of the process alone") {
    connection c;
    asio::io_context io;
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
    const int of_library = c.b->next_interest().descriptor;
    c.b->begin_batch();
    c.reset_unnoticed();
    CHECK_FALSE(c.b->submit(1, get_request{"/a", false}));
    // Somebody gets the number that the library has closed.
    std::vector<tcp::socket> others;
    while (others.empty() || others.back().native_handle() < of_library) {
        others.emplace_back(io);
        others.back().connect(acceptor.local_endpoint());
    }
    REQUIRE(others.back().native_handle() == of_library);
    const int on = 1;
    REQUIRE(::setsockopt(of_library, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0);
    c.b->end_batch();
    int corked = 0;
    socklen_t size = sizeof corked;
    REQUIRE(::getsockopt(of_library, IPPROTO_TCP, TCP_CORK, &corked, &size) == 0);
    CHECK(corked == 1);
}

TEST_CASE("the listener may submit, abort and close from within its calls") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    const auto submit = [&](op_id id) { CHECK_FALSE(c.b->submit(id, get_request{"/a", false})); };
    const auto two_answers = [&] {
        submit(1);
        submit(2);
        c.server.refuse_next();
        c.server.refuse_next();
    };
    SECTION("submit") {
        c.seen.reaction = [&](op_id id) {
            if (id != 1) return;
            submit(3);
            CHECK(c.seen.replies.size() == 1);
        };
        two_answers();
        drive(*c.b, [&] { return c.seen.replies.size() == 2; });
        c.server.refuse_next();
        drive(*c.b, [&] { return c.seen.replies.size() == 3; });
        for (const auto& [id, replies] : c.seen.replies) CHECK(replies.at(0).code == zk_errc::no_node);
    }
    SECTION("another backend") {  // of the same process, in the middle of this one's packets
        c.seen.reaction = [&](op_id id) {
            if (id == 1) const connection another;
        };
        two_answers();
        drive(*c.b, [&] { return c.seen.replies.size() == 2; });
    }
    SECTION("abort") {
        c.seen.reaction = [&](op_id id) {
            if (id == 1) c.b->abort_connection();
        };
        two_answers();
        drive(*c.b, [&] { return c.seen.replies.size() == 2; });
        CHECK(c.seen.replies[1].at(0).code == zk_errc::no_node);
        CHECK(c.seen.links.back() == link_state::disconnected);
        c.check_next_connection();
    }
    SECTION("close") {
        c.seen.reaction = [&](op_id id) {
            if (id == 1) c.b->close();
        };
        two_answers();
        submit(3);
        drive(*c.b, [&] { return c.seen.replies.size() == 3; });
        CHECK(c.seen.replies[1].at(0).code == zk_errc::no_node);
        CHECK(c.seen.replies[3].at(0).sent);
        CHECK(c.b->next_interest().descriptor == -1);
    }
}

TEST_CASE("the library never sees a transaction with a path that it would refuse") {
    // Fact 16: it would end the process.
    connection c;
    const std::size_t bad = GENERATE(0u, 1u);
    multi_request m;
    m.ops = {check_op{"/a"}, check_op{"/b"}};
    m.ops[bad] = check_op{GENERATE(as<std::string>{}, "b", "/b/", "")};
    CHECK(c.b->submit(1, m) == zk_errc::bad_arguments);
    m.ops[bad] = create_request{"/b/", "", open_acl(), create_mode::ephemeral_sequential};  // its name is the number
    CHECK_FALSE(c.b->submit(2, m));
    c.b->close();
    CHECK(c.seen.replies.size() == 1);
}

}  // namespace half_sent_tests
