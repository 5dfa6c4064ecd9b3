#pragma once

#include "tls/certificates.hpp"

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace zkasio::test {

/// Speaks TLS with clients, and in the clear with a server behind it: for tests of certificates, which a real server
/// would have to be started for. Has a thread of its own.
class tls_terminator {
public:
    /// @param prepare changes the context that all connections have in common
    tls_terminator(const certificate_authority::issued& key, const std::string& server,
                   const std::function<void(asio::ssl::context&)>& prepare = {});
    ~tls_terminator();
    tls_terminator(const tls_terminator&) = delete;
    tls_terminator& operator=(const tls_terminator&) = delete;

    std::uint16_t port() const noexcept { return port_; }
    std::string address(const std::string& host = "localhost") const { return host + ':' + std::to_string(port_); }

    /// The names that clients have sent (SNI), one for each handshake that ended well; empty where there was none.
    std::vector<std::string> names() const;
    /// How many bytes clients have sent inside of TLS.
    std::size_t received() const;

private:
    struct link;
    asio::awaitable<void> accept();
    asio::awaitable<void> serve(std::shared_ptr<link> l);
    asio::awaitable<void> copy(std::shared_ptr<link> l, bool requests);

    asio::io_context io_;
    asio::ssl::context context_;
    asio::ip::tcp::endpoint server_;
    asio::ip::tcp::acceptor acceptor_;
    std::uint16_t port_;
    mutable std::mutex mutex_;
    std::vector<std::string> names_;  // guarded
    std::size_t received_ = 0;        // guarded
    std::thread thread_;
};

}  // namespace zkasio::test
