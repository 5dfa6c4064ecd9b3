// The C library keeps what it could not send for the next connection, and sends it there: requests whose callers have got an
// error are executed, and the rest of a half-sent one is taken for a packet. Over a server that is scripted byte by byte.

#include "support/catch.hpp"

#include <zkasio/detail/backend.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <poll.h>

#include <array>
#include <map>

using namespace zkasio;
using namespace zkasio::detail;
using asio::ip::tcp;

namespace {

struct recorder final : backend_listener {
    void on_reply(op_id id, reply&& r) noexcept override { replies[id].push_back(std::move(r)); }
    void on_link(link_state s) noexcept override { links.push_back(s); }
    void on_node_event(node_event, std::string_view) noexcept override {}
    void on_log(std::string_view) noexcept override {}
    std::map<op_id, std::vector<reply>> replies;
    std::vector<link_state> links;
};

class scripted_server {
public:
    std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

    // Accepts a connection and answers its handshake.
    void shake_hands() {
        socket_ = acceptor_.accept();
        std::array<char, 49> request;
        asio::read(socket_, asio::buffer(request));
        std::array<unsigned char, 41> answer{};
        answer[3] = 37;                       // length
        answer[10] = 0x27, answer[11] = 0x10;  // timeout: 10 000 ms
        answer[19] = 7;                       // session id
        answer[23] = 16;                      // length of the password
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

}  // namespace

TEST_CASE("what could not be sent fails, and never reaches the next connection") {
    scripted_server server;
    recorder seen;
    const auto b = make_c_backend(seen);
    open_params p;
    p.servers = {server.address()};
    p.session_timeout = std::chrono::seconds(10);
    b->open(p);
    const auto connected = [&] { return !seen.links.empty() && seen.links.back() == link_state::connected; };
    b->next_interest();
    b->process(false, true);
    const auto asked = [&] { return b->has_socket(); };
    drive(*b, asked);
    b->process(false, true);
    server.shake_hands();
    drive(*b, connected);

    // The peer is gone, and nobody has noticed: the first send fails inside of the library.
    server.reset();
    b->begin_batch();
    for (op_id id = 1; id <= 3; ++id) CHECK_FALSE(b->submit(id, get_request{"/a", false}));
    b->end_batch();
    const auto all_answered = [&] { return seen.replies.size() == 3; };
    CHECK(all_answered());
    for (const auto& [id, replies] : seen.replies) {
        REQUIRE(replies.size() == 1);
        CHECK(replies[0].code == zk_errc::connection_loss);
        CHECK(replies[0].sent);  // nobody can know
    }
    CHECK(seen.links == std::vector<link_state>{link_state::connected, link_state::disconnected});

    // The next connection begins with a handshake, and nothing follows it. (An earlier one was dropped unused.)
    for (int attempt = 0; attempt < 3 && !connected(); ++attempt) {
        drive(*b, asked);
        b->process(false, true);
        try {
            server.shake_hands();
            drive(*b, connected);
        } catch (const std::system_error&) {
        }
    }
    REQUIRE(connected());
    for (int turn = 0; turn < 5; ++turn) {
        b->next_interest();
        b->process(true, true);
    }
    CHECK(server.bytes_received() == 0);
    CHECK(seen.replies.size() == 3);
}
