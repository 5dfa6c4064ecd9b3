// The C library keeps what it could not send for the next connection, and sends it there: requests whose callers have got an
// error are executed, and the rest of a half-sent one is taken for a packet. Over a server that is scripted byte by byte.

#include "support/catch.hpp"

#include <zkasio/detail/backend.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

using namespace zkasio;
using namespace zkasio::detail;
using asio::ip::tcp;

namespace {

struct recorder final : backend_listener {
    void on_reply(op_id id, reply&& r) noexcept override {
        replies[id].push_back(std::move(r));
        if (reaction) reaction(id);
    }
    void on_link(link_state s) noexcept override { links.push_back(s); }
    void on_node_event(node_event, std::string_view) noexcept override {}
    void on_log(std::string_view) noexcept override {}
    std::map<op_id, std::vector<reply>> replies;
    std::vector<link_state> links;
    std::function<void(op_id)> reaction;
};

class scripted_server {
public:
    std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

    // Accepts a connection, checks that it begins with a handshake, and answers that.
    void shake_hands() {
        socket_ = acceptor_.accept();
        std::array<unsigned char, 49> request{};
        asio::read(socket_, asio::buffer(request));
        clean = clean && request[0] == 0 && request[1] == 0 && request[2] == 0 && request[3] == request.size() - 4;
        std::array<unsigned char, 41> answer{};
        answer[3] = 37;                       // length
        answer[10] = 0x27, answer[11] = 0x10;  // timeout: 10 000 ms
        answer[19] = 7;                       // session id
        answer[23] = 16;                      // length of the password
        asio::write(socket_, asio::buffer(answer));
    }
    // "No such node", to the request with this number in its connection; they are numbered by the library, from somewhere.
    void refuse_next() {
        std::array<unsigned char, 8> head{};
        asio::read(socket_, asio::buffer(head));
        std::vector<char> rest(static_cast<std::size_t>((head[2] << 8) + head[3]) - 4);
        asio::read(socket_, asio::buffer(rest));
        std::array<unsigned char, 20> answer{};
        answer[3] = 16;
        std::copy(head.begin() + 4, head.end(), answer.begin() + 4);
        answer[16] = answer[17] = answer[18] = 0xff, answer[19] = 0x9b;  // -101
        asio::write(socket_, asio::buffer(answer));
    }
    void reset() {
        socket_.set_option(asio::socket_base::linger(true, 0));
        socket_.close();
    }
    std::size_t bytes_received() {
        std::error_code failed;
        return socket_.available(failed);
    }
    bool clean = true;  // each connection began with a handshake

private:
    asio::io_context io_;
    tcp::acceptor acceptor_{io_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
    tcp::socket socket_{io_};
};

// Drives the backend until `reached`, as the event loop does.
template <class Condition>
void drive(backend& b, Condition reached) {
    for (int turn = 0; turn < 2000 && !reached(); ++turn) {
        const interest next = b.next_interest();
        pollfd p{next.descriptor, static_cast<short>(POLLIN | (next.write ? POLLOUT : 0)), 0};
        ::poll(&p, next.descriptor < 0 ? 0 : 1, 5);
        b.process((p.revents & ~POLLOUT) != 0, (p.revents & ~POLLIN) != 0);
    }
    REQUIRE(reached());
}

// A backend, and the server that it is connected to.
class connection {
public:
    connection() {
        open_params p;
        p.servers = {server.address()};
        p.session_timeout = std::chrono::seconds(10);
        b->open(p);
        connect();
    }
    bool connected() const { return !seen.links.empty() && seen.links.back() == link_state::connected; }

    // An attempt that was dropped unused may be waiting in front of the one that counts.
    void connect() {
        for (int attempt = 0; attempt < 4 && !connected(); ++attempt) {
            drive(*b, [&] { return b->has_socket(); });
            b->process(false, true);
            try {
                server.shake_hands();
                drive(*b, [&] { return connected(); });
            } catch (const std::system_error&) {
            }
        }
        REQUIRE(connected());
        REQUIRE(server.clean);
    }

    // Nothing but a handshake arrives.
    void check_next_connection() {
        connect();
        for (int turn = 0; turn < 5; ++turn) {
            b->next_interest();
            b->process(true, true);
        }
        CHECK(server.bytes_received() == 0);
    }

    scripted_server server;
    recorder seen;
    std::unique_ptr<backend> b = make_c_backend(seen);
};

// More than the buffers of two sockets hold: it is half sent.
request large() { return set_request{"/a", std::string(16'000'000, 'x'), any_version}; }

}  // namespace

TEST_CASE("what could not be sent fails, and never reaches the next connection") {
    connection c;
    const int singles = GENERATE(0, 1, 3);
    const bool batch = singles == 0;
    const int count = batch ? 3 : singles;
    INFO((batch ? "batch of " : "one by one: ") << count);
    // The peer is gone, and nobody has noticed: the first send fails inside of the library.
    c.server.reset();
    if (batch) c.b->begin_batch();
    for (int id = 1; id <= count; ++id) CHECK_FALSE(c.b->submit(static_cast<op_id>(id), get_request{"/a", false}));
    CHECK(c.seen.replies.empty());  // not from within submit()
    if (batch)
        c.b->end_batch();
    else
        c.b->next_interest();
    REQUIRE(c.seen.replies.size() == static_cast<std::size_t>(count));
    for (const auto& [id, replies] : c.seen.replies) {
        REQUIRE(replies.size() == 1);
        CHECK(replies[0].code == zk_errc::connection_loss);
        CHECK(replies[0].sent);  // nobody can know
    }
    CHECK(c.seen.links == std::vector<link_state>{link_state::connected, link_state::disconnected});
    CHECK(c.b->last_failure() == c.server.address() + ": Connection reset by peer");
    c.check_next_connection();
    CHECK(c.seen.replies.size() == static_cast<std::size_t>(count));
}

TEST_CASE("a half-sent request is not continued on the next connection") {
    connection c;
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
    c.server.reset();
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
    connection c;
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
