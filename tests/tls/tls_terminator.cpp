#include "tls/tls_terminator.hpp"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/address.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <array>
#include <system_error>
#include <utility>

namespace zkasio::test {

using asio::ip::tcp;

struct tls_terminator::link {
    link(tcp::socket s, asio::ssl::context& context, asio::io_context& io)
        : client(std::move(s), context), server(io) {}
    void close() {
        std::error_code ignored;
        client.next_layer().close(ignored);
        server.close(ignored);
    }
    asio::ssl::stream<tcp::socket> client;
    tcp::socket server;
    std::array<char, 16384> requests, replies;
};

tls_terminator::tls_terminator(const certificate_authority::issued& key, const std::string& server,
                               const std::function<void(asio::ssl::context&)>& prepare)
    : context_(asio::ssl::context::tls_server),
      server_(asio::ip::make_address(server.substr(0, server.rfind(':'))),
              static_cast<std::uint16_t>(std::stoi(server.substr(server.rfind(':') + 1)))),
      acceptor_(io_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
      port_(acceptor_.local_endpoint().port()) {
    context_.use_certificate_chain_file(key.chain);
    context_.use_private_key_file(key.key, asio::ssl::context::pem);
    if (prepare) prepare(context_);
    asio::co_spawn(io_, accept(), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
}

tls_terminator::~tls_terminator() {
    io_.stop();
    thread_.join();
}

std::vector<std::string> tls_terminator::names() const {
    const std::lock_guard lock(mutex_);
    return names_;
}

std::size_t tls_terminator::received() const {
    const std::lock_guard lock(mutex_);
    return received_;
}

asio::awaitable<void> tls_terminator::accept() {
    for (;;) {
        tcp::socket s = co_await acceptor_.async_accept(asio::use_awaitable);
        s.set_option(tcp::no_delay(true));
        auto l = std::make_shared<link>(std::move(s), context_, io_);
        asio::co_spawn(io_, serve(std::move(l)), asio::detached);
    }
}

asio::awaitable<void> tls_terminator::serve(std::shared_ptr<link> l) {
    try {
        co_await l->client.async_handshake(asio::ssl::stream_base::server, asio::use_awaitable);
        const char* const name = ::SSL_get_servername(l->client.native_handle(), TLSEXT_NAMETYPE_host_name);
        {
            const std::lock_guard lock(mutex_);
            names_.emplace_back(name ? name : "");
        }
        co_await l->server.async_connect(server_, asio::use_awaitable);
        l->server.set_option(tcp::no_delay(true));
        asio::co_spawn(io_, copy(l, true), asio::detached);
        asio::co_spawn(io_, copy(l, false), asio::detached);
    } catch (const std::exception&) {
        l->close();
    }
}

asio::awaitable<void> tls_terminator::copy(std::shared_ptr<link> l, bool requests) {
    try {
        for (;;) {
            if (requests) {
                const std::size_t n =
                    co_await l->client.async_read_some(asio::buffer(l->requests), asio::use_awaitable);
                {
                    const std::lock_guard lock(mutex_);
                    received_ += n;
                }
                co_await asio::async_write(l->server, asio::buffer(l->requests, n), asio::use_awaitable);
            } else {
                const std::size_t n =
                    co_await l->server.async_read_some(asio::buffer(l->replies), asio::use_awaitable);
                co_await asio::async_write(l->client, asio::buffer(l->replies, n), asio::use_awaitable);
            }
        }
    } catch (const std::exception&) {
        l->close();
    }
}

}  // namespace zkasio::test
