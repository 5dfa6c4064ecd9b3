#include <zkasio/testing/ensemble.hpp>

#include <zkasio/error.hpp>
#include <zkasio/testing/detail/endpoint.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include <array>
#include <cerrno>
#include <fstream>
#include <random>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>

namespace zkasio::testing {

using asio::ip::tcp;

namespace {

constexpr int least_port = 10000;

// The kernel gives ports from this one on to outgoing connections.
int first_ephemeral_port() {
    int first = 32768;
    std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
    return first;
}

bool is_free(const asio::ip::address& address, std::uint16_t port) {
    asio::io_context io;
    std::error_code taken;
    tcp::acceptor a(io, address.is_v4() ? tcp::v4() : tcp::v6());
    a.set_option(tcp::acceptor::reuse_address(true));
    a.bind(tcp::endpoint(address, port), taken);
    if (!taken) a.listen(1, taken);
    return !taken;
}

}  // namespace

// A port chosen by the kernel could be that of an outgoing connection when a server asks for it. Or a client that
// connects to the server while it is down gets the server's port for its own end, and is connected to itself.
std::uint16_t free_port(const std::string& address) {
    const auto where = asio::ip::make_address(address);
    thread_local std::mt19937 random(std::random_device{}());
    const int end = first_ephemeral_port();
    if (end > least_port) {
        std::uniform_int_distribution<int> ports(least_port, end - 1);
        for (int attempt = 0; attempt < 1000; ++attempt)
            if (const auto port = static_cast<std::uint16_t>(ports(random)); is_free(where, port)) return port;
    }
    asio::io_context io;
    tcp::acceptor a(io, tcp::endpoint(where, 0));
    return a.local_endpoint().port();
}

std::string four_letter_command(const std::string& endpoint, const std::string& four_letters) {
    const tcp::endpoint server = testing_detail::endpoint_of(endpoint, "four_letter_command");
    asio::io_context io;
    tcp::socket s(io);
    std::error_code failed;
    s.connect(server, failed);
    if (failed) return {};
    asio::write(s, asio::buffer(four_letters), failed);
    // A server that is starting or stopping may accept and never answer. (Asio's own read would wait for ever.)
    std::string answer;
    std::array<char, 4096> part;
    pollfd readable{s.native_handle(), POLLIN, 0};
    for (;;) {
        const int ready = ::poll(&readable, 1, 2000);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) break;
        const ssize_t n = ::recv(s.native_handle(), part.data(), part.size(), 0);
        if (n <= 0) break;
        answer.append(part.data(), static_cast<std::size_t>(n));
    }
    return answer;
}

}  // namespace zkasio::testing
