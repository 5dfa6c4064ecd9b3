#pragma once

#include "support/test_client.hpp"
#include "support/test_server.hpp"
#include "tls/certificates.hpp"

#include <zkasio/tls/tls_options.hpp>

#include <string>

namespace zkasio::test {

/// A real ZooKeeper that speaks TLS, and also, on another port, none.
class tls_server {
public:
    /// @param lines more of its configuration, one behind the other
    explicit tls_server(const std::string& lines = {})
        : authority_("test authority"),
          key_(authority_.issue("zookeeper", "DNS:localhost,IP:127.0.0.1")),
          port_(free_port()),
          server_(1, {"TLS_PORT=" + std::to_string(port_), "TLS_KEY=" + key_.both, "TLS_CA=" + authority_.file(),
                      "TLS_LINES=" + lines}) {}

    const certificate_authority& authority() const noexcept { return authority_; }
    std::string address() const { return "localhost:" + std::to_string(port_); }
    /// Where clients connect to when something stands in between.
    std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
    std::string address_in_the_clear() const { return server_.connect_string(); }
    test_server& process() const noexcept { return server_; }

    /// Of a client with a certificate that the server accepts.
    tls_files files(const std::string& name = "client") const {
        const certificate_authority::issued c = authority_.issue(name, {});
        return tls_files().ca(authority_.file()).certificate(c.chain, c.key);
    }

private:
    certificate_authority authority_;
    certificate_authority::issued key_;
    std::uint16_t port_;
    mutable test_server server_;
};

}  // namespace zkasio::test
