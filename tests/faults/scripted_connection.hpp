#pragma once

#include "support/catch.hpp"

#include <zkasio/detail/seam/backend.hpp>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::test {

struct recorder final : detail::backend_listener {
    void on_reply(detail::op_id id, detail::reply&& r) noexcept override {
        replies[id].push_back(std::move(r));
        if (reaction) reaction(id);
    }
    void on_link(detail::link_state s) noexcept override { links.push_back(s); }
    void on_node_event(detail::node_event, std::string_view) noexcept override {}
    void on_log(std::string_view) noexcept override {}
    std::map<detail::op_id, std::vector<detail::reply>> replies;
    std::vector<detail::link_state> links;
    std::function<void(detail::op_id)> reaction;
};

class scripted_server {
public:
    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
    detail::server_address where() const { return {"127.0.0.1", "127.0.0.1", port()}; }

    // Accepts a connection, checks that it begins with a handshake, and answers that, the last byte on its own.
    void shake_hands() {
        socket_ = acceptor_.accept();
        socket_.set_option(asio::socket_base::send_buffer_size(1 << 20));  // as much as the system lets us have
        std::array<unsigned char, 49> request{};
        asio::read(socket_, asio::buffer(request));
        clean = clean && request[0] == 0 && request[1] == 0 && request[2] == 0 && request[3] == request.size() - 4;
        std::array<unsigned char, 41> answer{};
        answer[3] = 37;                       // length
        answer[10] = static_cast<unsigned char>(timeout_ms >> 8), answer[11] = static_cast<unsigned char>(timeout_ms);
        answer[19] = 7;                       // session id
        answer[23] = 16;                      // length of the password
        asio::write(socket_, asio::buffer(answer, 40));
        if (before_last_byte) before_last_byte();
        asio::write(socket_, asio::buffer(answer) + 40);
    }
    struct packet {
        std::int32_t xid, type;
    };
    packet read_packet() {
        std::array<unsigned char, 12> head{};
        asio::read(socket_, asio::buffer(head));
        std::vector<char> rest(static_cast<std::size_t>((head[2] << 8) + head[3]) - 8);
        asio::read(socket_, asio::buffer(rest));
        return {number(&head[4]), number(&head[8])};
    }
    void answer(std::int32_t xid, std::int32_t failure, std::size_t bytes = 20) {
        std::array<unsigned char, 20> text{};
        text[3] = 16;
        for (int i = 0; i < 4; ++i) {
            text[static_cast<std::size_t>(7 - i)] = static_cast<unsigned char>(xid >> 8 * i);
            text[static_cast<std::size_t>(19 - i)] = static_cast<unsigned char>(failure >> 8 * i);
        }
        asio::write(socket_, asio::buffer(text, bytes));
    }
    // "No such node", to the request with this number in its connection; they are numbered by the library, from
    // somewhere.
    void refuse_next() {
        const packet asked = read_packet();
        answer(asked.xid, -101);
    }
    // To a get: so many bytes, and a node_stat of zeros.
    void answer_get(std::int32_t xid, std::size_t size) {
        std::string text(20, '\0');
        const auto put = [&](std::size_t at, std::size_t value) {
            for (std::size_t i = 0; i < 4; ++i) text[at + 3 - i] = static_cast<char>(value >> 8 * i);
        };
        text.append(size, 'x').append(68, '\0');
        text.insert(0, 4, '\0');
        put(0, text.size() - 4);
        put(4, static_cast<std::uint32_t>(xid));
        put(20, size);
        asio::write(socket_, asio::buffer(text));
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
    int timeout_ms = 10'000;
    std::function<void()> before_last_byte;

private:
    static std::int32_t number(const unsigned char* bytes) {
        std::uint32_t n = 0;
        for (int i = 0; i < 4; ++i) n = n << 8 | bytes[i];
        return static_cast<std::int32_t>(n);
    }

    asio::io_context io_;
    asio::ip::tcp::acceptor acceptor_{io_, asio::ip::tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
    asio::ip::tcp::socket socket_{io_};
};

/// A tunnel's channel that changes nothing: what is tested is the way through the tunnel.
class clear_channel final : public detail::secure_channel {
public:
    explicit clear_channel(int descriptor) : descriptor_(descriptor) {}
    progress handshake() override { return progress::done; }
    transfer read(std::span<char> to) override {
        const ssize_t n = ::recv(descriptor_, to.data(), to.size(), MSG_DONTWAIT);
        return n > 0 ? transfer{progress::done, static_cast<std::size_t>(n)}
                     : transfer{n == 0 ? progress::ended : after_failure(progress::needs_input)};
    }
    transfer write(std::span<const char> from) override {
        const ssize_t n = ::send(descriptor_, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        return n >= 0 ? transfer{progress::done, static_cast<std::size_t>(n)}
                      : transfer{after_failure(progress::needs_output)};
    }
    std::string failure() const override { return failure_; }

private:
    progress after_failure(progress otherwise) {
        if (errno == EAGAIN) return otherwise;
        failure_ = std::generic_category().message(errno);
        return progress::failed;
    }
    int descriptor_;
    std::string failure_;
};

/// What one turn of the event loop does for the backend, `readable` or not.
inline detail::drain_result turn_of(detail::backend& b, bool readable, bool writable) {
    if (b.is_to_be_secured())
        b.secure([](int descriptor, const std::string&) { return std::make_unique<clear_channel>(descriptor); });
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
        server.timeout_ms = timeout_ms;
        detail::open_params p;
        p.servers = {server.where()};
        p.session_timeout = std::chrono::seconds(10);
        p.secured = how == way::tunnelled;
        b->open(p);
        connect();
    }
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
        pollfd p{b->next_interest().descriptor, POLLIN, 0};
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

    scripted_server server;
    recorder seen;
    std::unique_ptr<detail::backend> b = detail::make_c_backend(seen);
};

}  // namespace zkasio::test
