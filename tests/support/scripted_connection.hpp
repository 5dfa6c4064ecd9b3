#pragma once

#include "support/catch.hpp"
#include "support/jute_writer.hpp"

#include <zkasio/detail/connection/plain_channel.hpp>
#include <zkasio/detail/seam/backend.hpp>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::test {

struct recorder final : detail::backend_listener {
    struct node_news {
        detail::node_event what;
        std::string path;
        std::int64_t zxid = 0;
        friend bool operator==(const node_news&, const node_news&) = default;
    };
    void on_reply(detail::op_id id, detail::reply&& r) noexcept override {
        replies[id].push_back(std::move(r));
        if (reaction) reaction(id);
    }
    void on_link(detail::link_state s) noexcept override { links.push_back(s); }
    void on_node_event(detail::node_event e, std::string_view path) noexcept override {
        events.push_back({e, std::string(path)});
    }
    void on_added_watch(detail::node_event e, std::string_view path, std::int64_t zxid) noexcept override {
        added.push_back({e, std::string(path), zxid});
    }
    void on_log(std::string_view line) noexcept override { lines.emplace_back(line); }
    std::map<detail::op_id, std::vector<detail::reply>> replies;
    std::vector<detail::link_state> links;
    std::vector<node_news> events, added;
    std::vector<std::string> lines;
    std::function<void(detail::op_id)> reaction;
};

/// A server's answer to a handshake. The default: a session of ten seconds.
struct greeting {
    std::int32_t version = 0, timeout_ms = 10'000;
    std::int64_t session = 7;
    std::string password = std::string(16, '\0');
    bool is_read_only = false;
    bool has_flag = true;  // false: of a server older than 3.4

    std::string frame() const {
        jute_writer w;
        w.number(version).number(timeout_ms).long_number(session).text(password);
        if (has_flag) w.boolean(is_read_only);
        return w.frame();
    }
};

class scripted_server {
public:
    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
    detail::server_address where() const { return {"127.0.0.1", "127.0.0.1", port()}; }

    // Accepts a connection, checks that it begins with a handshake, and returns that, without its length.
    std::string take_handshake() {
        socket_ = acceptor_.accept();
        socket_.set_option(asio::socket_base::send_buffer_size(1 << 20));  // as much as the system lets us have
        std::array<char, 49> request{};
        read(request.data(), request.size());
        clean = clean && request[0] == 0 && request[1] == 0 && request[2] == 0 && request[3] == request.size() - 4;
        return {request.data() + 4, request.size() - 4};
    }
    // Accepts a connection, and answers its handshake, the last byte on its own.
    void shake_hands() {
        handshake = take_handshake();
        const std::string answer = greets_with.frame();
        send(answer.substr(0, 40));
        if (before_last_byte) before_last_byte();
        send(answer.substr(40));
    }
    struct packet {
        std::int32_t xid, type;
        std::string body = {};
    };
    packet read_packet() {
        std::array<unsigned char, 12> head{};
        read(head.data(), head.size());
        std::string rest(static_cast<std::size_t>(number(&head[0])) - 8, '\0');
        read(rest.data(), rest.size());
        return {number(&head[4]), number(&head[8]), std::move(rest)};
    }
    static std::string reply_frame(std::int32_t xid, std::int32_t failure, std::string_view body = {},
                                   std::int64_t zxid = 0) {
        jute_writer w;
        w.number(xid).long_number(zxid).number(failure);
        return jute_writer().text(w.bytes() + std::string(body)).bytes();
    }
    void answer(std::int32_t xid, std::int32_t failure, std::size_t bytes = 20) {
        send(reply_frame(xid, failure).substr(0, bytes));
    }
    void answer(const packet& asked, std::string_view body, std::int64_t zxid = 0) {
        send(reply_frame(asked.xid, 0, body, zxid));
    }
    // Of a watch: types as ZooKeeper numbers them, 1 created, 2 deleted, 3 changed, 4 children.
    // Its zxid is told by servers from 3.9 on.
    void tell(std::int32_t type, std::string_view path, std::int64_t zxid = -1) {
        constexpr std::int32_t connected = 3;
        send(reply_frame(-1, 0, jute_writer().number(type).number(connected).text(path).bytes(), zxid));
    }
    void send(std::string_view bytes) { asio::write(socket_, asio::buffer(bytes)); }
    // "No such node", to the request with this number in its connection; they are numbered by the library, from
    // somewhere.
    void refuse_next() {
        const packet asked = read_packet();
        answer(asked.xid, -101);
    }
    // To a get: so many bytes, and a node_stat of zeros.
    void answer_get(std::int32_t xid, std::size_t size) {
        jute_writer w;
        w.text(std::string(size, 'x')).stat(node_stat());
        send(reply_frame(xid, 0, w.bytes()));
    }
    // Within a while.
    bool is_asked() {
        pollfd p{socket_.native_handle(), POLLIN, 0};
        return ::poll(&p, 1, 5000) == 1;
    }
    void hang_up() { socket_.close(); }
    void reset() {
        socket_.set_option(asio::socket_base::linger(true, 0));
        socket_.close();
    }
    std::size_t bytes_received() {
        std::error_code failed;
        return socket_.available(failed);
    }
    bool clean = true;  // each connection began with a handshake
    greeting greets_with;
    std::string handshake;  // the last one that was answered
    std::function<void()> before_last_byte;
    std::function<void()> peers_turn;  // called while nothing has come

private:
    void read(void* to, std::size_t size) {
        auto* at = static_cast<char*>(to);
        while (size > 0) {
            wait_for_bytes();
            const std::size_t n = socket_.read_some(asio::buffer(at, size));
            at += n;
            size -= n;
        }
    }
    void wait_for_bytes() {
        pollfd p{socket_.native_handle(), POLLIN, 0};
        for (int turn = 0; turn < 2000 && ::poll(&p, 1, turn == 0 ? 0 : 5) != 1; ++turn)
            if (peers_turn) peers_turn();
        if (p.revents == 0) throw std::runtime_error("the server is sent nothing");
    }
    static std::int32_t number(const unsigned char* bytes) {
        std::uint32_t n = 0;
        for (int i = 0; i < 4; ++i) n = n << 8 | bytes[i];
        return static_cast<std::int32_t>(n);
    }

    asio::io_context io_;
    asio::ip::tcp::acceptor acceptor_{io_, asio::ip::tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
    asio::ip::tcp::socket socket_{io_};
};

/// A tunnel's channel that changes nothing, and passes for TLS: what is tested is the way through the tunnel.
class clear_channel final : public detail::plain_channel {
public:
    using plain_channel::plain_channel;
    bool encrypts() const override { return true; }
};

/// What one turn of the event loop does for the backend, `readable` or not.
inline detail::drain_result turn_of(detail::backend& b, bool readable, bool writable) {
    if (b.is_to_be_secured())
        b.secure([](int descriptor, const detail::server_address&) {
            return std::make_unique<clear_channel>(descriptor);
        });
    return b.process(readable, writable);
}

/// Drives the backend until `reached`, as the event loop does.
template <class Condition>
void drive(detail::backend& b, Condition reached) {
    for (int turn = 0; turn < 2000 && !reached(); ++turn) {
        const detail::interest next = b.next_interest();
        pollfd p{next.descriptor, static_cast<short>(POLLIN | (next.write ? POLLOUT : 0)), 0};
        ::poll(&p, next.descriptor < 0 ? 0 : 1, 5);
        turn_of(b, (p.revents & ~POLLOUT) != 0, (p.revents & ~POLLIN) != 0);
    }
    REQUIRE(reached());
}

/// A backend, and the server that it is connected to.
class connection {
public:
    enum class way { direct, tunnelled };
    explicit connection(way how = way::direct, int timeout_ms = 10'000) {
        server.greets_with.timeout_ms = timeout_ms;
        detail::open_params p;
        p.secured = how == way::tunnelled;
        open(std::move(p));
        connect();
    }
    /// Opens the backend and leaves the rest to the test. With the server of this object, if `p` has none.
    explicit connection(detail::open_params p) { open(std::move(p)); }

    bool connected() const { return !seen.links.empty() && seen.links.back() == detail::link_state::connected; }

    // An attempt that was dropped unused may be waiting in front of the one that counts.
    void connect() {
        for (int attempt = 0; attempt < 4 && !connected(); ++attempt) {
            drive(*b, [&] { return b->has_socket(); });
            turn_of(*b, false, true);
            try {
                server.shake_hands();
                drive(*b, [&] { return connected(); });
            } catch (const std::system_error&) {
            }
        }
        REQUIRE(connected());
        REQUIRE(server.clean);
    }

    // The server's end is gone, the kernel has been told, and the backend has not looked. On a machine that is busy the
    // news takes a while, over the loopback as well.
    void reset_unnoticed() {
        pollfd p{b->next_interest().descriptor, 0, 0};  // POLLHUP and POLLERR are always waited for
        server.reset();
        REQUIRE(::poll(&p, 1, 5000) == 1);
    }

    // Nothing but a handshake arrives.
    void check_next_connection() {
        connect();
        for (int turn = 0; turn < 5; ++turn) {
            b->next_interest();
            turn_of(*b, true, true);
        }
        CHECK(server.bytes_received() == 0);
    }

    // Until the backend has told of the answer to each of so many requests, or of its failure.
    void until_answered(std::size_t requests) {
        drive(*b, [&] { return seen.replies.size() >= requests; });
    }
    // Until all that the server has sent so far was read.
    void until_read() {
        for (int turn = 0; turn < 3; ++turn) {
            b->next_interest();
            turn_of(*b, true, true);
        }
    }

    scripted_server server;
    recorder seen;
    std::unique_ptr<detail::backend> b = detail::make_c_backend(seen);

private:
    void open(detail::open_params p) {
        if (p.servers.empty()) p.servers = {server.where()};
        if (p.session_timeout.count() == 0) p.session_timeout = std::chrono::seconds(10);
        b->open(p);
        server.peers_turn = [this] { until_read(); };
    }
};

}  // namespace zkasio::test
