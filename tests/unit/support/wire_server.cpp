#include "unit/support/wire_server.hpp"

#include "support/opcode.hpp"

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <array>
#include <system_error>

namespace zkasio::test {

using asio::ip::tcp;

namespace {

std::int64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
    std::uint64_t n = 0;
    for (std::size_t i = at; i < at + size; ++i) n = n << 8 | static_cast<unsigned char>(bytes.at(i));
    return size == 4 ? static_cast<std::int32_t>(n) : static_cast<std::int64_t>(n);
}

asio::awaitable<std::string> read_frame(tcp::socket& from) {
    std::string length(4, '\0');
    co_await asio::async_read(from, asio::buffer(length), asio::use_awaitable);
    if (length == "srvr") co_return length;
    std::string body(static_cast<std::size_t>(number_at(length, 0, 4)), '\0');
    co_await asio::async_read(from, asio::buffer(body), asio::use_awaitable);
    co_return body;
}

std::string reply_frame(std::int32_t xid, std::int32_t failure, const std::string& body) {
    jute_writer w;
    w.number(xid).long_number(xid > 0 ? 1 : 0).number(failure);
    return jute_writer().text(w.bytes() + body).bytes();
}

}  // namespace

struct wire_server::connection {
    explicit connection(tcp::socket s) : socket(std::move(s)) {}
    tcp::socket socket;
};

wire_server::wire_server(const asio::any_io_executor& executor)
    : acceptor_(executor, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    asio::co_spawn(executor, accept(), asio::detached);
}

std::string wire_server::address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
}

void wire_server::cut() {
    for (const auto& weak : std::exchange(connections_, {}))
        if (const auto c = weak.lock()) c->socket.close();
}

void wire_server::close() {
    acceptor_.close();
    cut();
}

void wire_server::tell(std::int32_t type, const std::string& path) {
    constexpr std::int32_t event_xid = -1, connected = 3;
    const std::string frame =
        reply_frame(event_xid, 0, jute_writer().number(type).number(connected).text(path).bytes());
    for (const auto& weak : connections_)
        if (const auto c = weak.lock()) asio::write(c->socket, asio::buffer(frame));
}

void wire_server::answer_late(const request& r, const outcome& o) {
    const std::string frame = reply_frame(r.xid, o.failure, o.body);
    for (const auto& weak : connections_)
        if (const auto c = weak.lock()) asio::write(c->socket, asio::buffer(frame));
}

std::size_t wire_server::count(std::int32_t type) const {
    return static_cast<std::size_t>(std::count(types.begin(), types.end(), type));
}

asio::awaitable<void> wire_server::accept() {
    try {
        for (;;) {
            const auto c = std::make_shared<connection>(co_await acceptor_.async_accept(asio::use_awaitable));
            connections_.push_back(c);
            asio::co_spawn(acceptor_.get_executor(), talk(c), asio::detached);
        }
    } catch (const std::system_error&) {  // close()
    }
}

asio::awaitable<void> wire_server::talk(std::shared_ptr<connection> c) {
    tcp::socket& s = c->socket;
    try {
        const std::string asked = co_await read_frame(s);
        if (asked == "srvr") {
            ++visits;
            co_await asio::async_write(s, asio::buffer(mode), asio::use_awaitable);
            co_return s.close();
        }
        handshake h{number_at(asked, 16, 8), asked.substr(28, 16), asked.back() != 0};
        handshakes.push_back(h);
        const std::optional<session> granted = greet(h);
        if (granted) {
            jute_writer w;
            w.number(granted->version).number(granted->timeout_ms).long_number(granted->id);
            if (granted->is_zookeepers)
                w.text("0123456789abcdef").boolean(granted->is_read_only);
            else
                w.text(std::string(16, '\0'));
            const std::string greeting = w.frame();
            co_await asio::async_write(s, asio::buffer(greeting), asio::use_awaitable);
        }
        for (bool goes_on = granted.has_value(); goes_on;) {
            const std::string frame = co_await read_frame(s);
            request r{static_cast<std::int32_t>(number_at(frame, 0, 4)),
                      static_cast<std::int32_t>(number_at(frame, 4, 4)), frame.substr(8)};
            const outcome o = answer_to(r);
            const std::string reply = reply_frame(r.xid, o.failure, o.body);
            if (!o.is_silent && !is_frozen) co_await asio::async_write(s, asio::buffer(reply), asio::use_awaitable);
            goes_on = !o.hangs_up;
        }
        s.close();
    } catch (const std::system_error&) {  // the client has hung up
    }
}

wire_server::outcome wire_server::answer_to(const request& r) {
    if (r.type == opcode::ping) return {};
    if (r.type == opcode::auth) return {auth_failure, {}, auth_failure != 0};
    if (r.type == opcode::exists && path_in(r) == "/") {
        ++reads_of_root;
        return {0, jute_writer().stat({}).bytes()};
    }
    types.push_back(r.type);
    if (r.type == opcode::set_watches) return {};
    if (r.type == opcode::close_session) return {0, {}, true};
    return answer(r);
}

std::string path_in(const wire_server::request& r) {
    return r.body.substr(4, static_cast<std::size_t>(number_at(r.body, 0, 4)));
}

}  // namespace zkasio::test
