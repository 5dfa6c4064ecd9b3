// What a proxy does with bytes, and with those who do not read them.

#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/testing/detail/peer_network.hpp>
#include <zkasio/testing/proxy.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using zkasio::testing::proxy;

// Both ends of connections through a proxy, without anything in between that would read by itself.
struct proxied {
    proxied() : listener(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
        between = std::make_unique<proxy>("127.0.0.1:" + std::to_string(listener.local_endpoint().port()));
    }
    tcp::socket connect() {
        const std::string address = between->address();
        tcp::socket s(io);
        s.connect(tcp::endpoint(asio::ip::make_address("127.0.0.1"),
                                static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1)))));
        return s;
    }
    asio::io_context io;
    tcp::acceptor listener;
    std::unique_ptr<proxy> between;
};

constexpr std::string_view the_end = "<end>", the_reset = "<reset>";

// So many bytes, or all until the end; what has come when nothing comes any more for so long.
std::string receive(tcp::socket& from, std::size_t size, std::chrono::milliseconds within = 5s) {
    std::string got;
    std::array<char, 4096> part;
    pollfd readable{from.native_handle(), POLLIN, 0};
    while (got.size() < size && ::poll(&readable, 1, static_cast<int>(within.count())) > 0) {
        const ssize_t n = ::recv(from.native_handle(), part.data(), std::min(part.size(), size - got.size()), 0);
        if (n == 0) return got += the_end;
        if (n < 0) return got += the_reset;
        got.append(part.data(), static_cast<std::size_t>(n));
    }
    return got;
}

void send(tcp::socket& to, const std::string& text) { asio::write(to, asio::buffer(text)); }

}  // namespace

TEST_CASE("proxy: an answer arrives though its sender has closed, with a delay, too", "[testing]") {
    proxied p;
    for (const auto delay : {0ms, 100ms}) {
        p.between->delay(delay);
        tcp::socket client = p.connect(), server = p.listener.accept();
        send(client, "question");
        client.shutdown(tcp::socket::shutdown_send);
        CHECK(receive(server, 100) == "question<end>");
        send(server, "answer");
        server.close();
        CHECK(receive(client, 100) == "answer<end>");
    }
}

TEST_CASE("proxy: what is sent after a delay has ended does not overtake what was sent before", "[testing]") {
    proxied p;
    p.between->delay(1s);
    tcp::socket client = p.connect(), server = p.listener.accept();
    send(client, "first ");
    CHECK(receive(server, 1, 50ms).empty());
    p.between->delay(0ms);
    send(client, "second");
    CHECK(receive(server, 12) == "first second");
}

TEST_CASE("proxy: nothing is lost in a silence, and nobody learns that the other one has gone", "[testing]") {
    proxied p;
    tcp::socket client = p.connect(), server = p.listener.accept();
    send(client, "a");
    CHECK(receive(server, 1) == "a");
    p.between->silence(true);
    send(client, "b");
    client.close();
    CHECK(receive(server, 1, 200ms).empty());
    p.between->silence(false);
    CHECK(receive(server, 100) == "b<end>");
}

TEST_CASE("proxy: a connection ends after so many bytes, delayed or not", "[testing]") {
    proxied p;
    for (const auto delay : {0ms, 50ms}) {
        p.between->delay(delay);
        p.between->plan_connections([&](std::size_t number) {
            static_cast<void>(number < p.between->connections());  // may be asked here
            proxy::plan what;
            what.cut_requests_after = 3;
            what.how = proxy::end::fin;
            return what;
        });
        tcp::socket client = p.connect(), server = p.listener.accept();
        send(client, "12345");
        CHECK(receive(server, 100) == "123<end>");
        CHECK(receive(client, 100) == "<end>");
    }
}

TEST_CASE("proxy: somebody who does not read holds up nobody else", "[testing]") {
    auto p = std::make_unique<proxied>();
    tcp::socket client = p->connect(), server = p->listener.accept();
    client.non_blocking(true);
    const std::string much(1 << 20, 'x');
    std::error_code full;
    std::size_t sent = 0;
    do {  // until nothing goes any more
        pollfd writable{client.native_handle(), POLLOUT, 0};
        if (::poll(&writable, 1, 300) <= 0) break;
        sent += client.write_some(asio::buffer(much), full);
    } while (!full || full == asio::error::would_block);
    CHECK(sent > 0);
    tcp::socket other = p->connect(), other_server = p->listener.accept();
    send(other, "x");
    CHECK(receive(other_server, 1) == "x");
    p->between->cut_all();
    CHECK(receive(other_server, 1) == "<reset>");
    CHECK(receive(client, 1) == "<reset>");
    auto gone = std::async(std::launch::async, [&] { p->between.reset(); });
    CHECK(gone.wait_for(10s) == std::future_status::ready);
    server.close();  // so that a proxy which is held up ends after all
}

TEST_CASE("proxy: a reset is told as a reset, an end as an end", "[testing]") {
    proxied p;
    tcp::socket client = p.connect(), server = p.listener.accept();
    send(client, "a");
    CHECK(receive(server, 1) == "a");
    client.set_option(asio::socket_base::linger(true, 0));
    client.close();
    CHECK(receive(server, 1) == "<reset>");
    p.between->refuse(true);
    tcp::socket refused = p.connect();
    CHECK(receive(refused, 1) == "<reset>");
}

TEST_CASE("proxy: as much as one likes passes", "[testing]") {
    proxied p;
    tcp::socket client = p.connect(), server = p.listener.accept();
    const std::string much(16 << 20, 'x');
    auto sent = std::async(std::launch::async, [&] { send(client, much); });
    CHECK(receive(server, much.size()).size() == much.size());
    server.close();  // ends a send() that waits
    p.between.reset();
    CHECK_NOTHROW(sent.get());
}

TEST_CASE("proxy: servers reach each other by names, are told a proxy's address, and are cut off", "[testing]") {
    zkasio::testing_detail::peer_network peers(3);
    CHECK(peers.hosts(0) == "127.0.0.1 zk1\n127.1.1.2 zk2\n127.1.1.3 zk3\n");
    CHECK(peers.hosts(1) == "127.2.1.1 zk1\n127.0.0.2 zk2\n127.2.1.3 zk3\n");
    const auto ports = peers.of(1);
    asio::io_context io;
    for (const std::uint16_t port : {ports.election, ports.quorum}) {
        tcp::acceptor second(io, tcp::endpoint(asio::ip::make_address("127.0.0.2"), port));
        tcp::socket first(io);
        const tcp::endpoint between(asio::ip::make_address("127.1.1.2"), port);
        first.connect(between);
        tcp::socket accepted = second.accept();
        const std::string head("\xff\xff\xff\xff\xff\xff\x00\x00" "\0\0\0\0\0\0\0\1" "\0\0\0\x0f", 20);
        send(first, head + "127.0.0.1:12345");
        const std::string address = port == ports.election ? "127.2.1.1:12345" : "127.0.0.1:12345";
        CHECK(receive(accepted, 35) == head + address);

        peers.connect(1, 0, false);
        CHECK_FALSE(peers.are_connected(0, 1));
        CHECK(receive(first, 1) == "<reset>");
        CHECK(receive(accepted, 1) == "<reset>");
        tcp::socket again(io);
        again.connect(between);
        CHECK(receive(again, 1) == "<reset>");
        CHECK(peers.are_connected(0, 2));
        peers.connect(0, 1, true);
        tcp::socket healed(io);
        healed.connect(between);
        const tcp::socket arrived = second.accept();
    }
}
