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
    /// @param line one more of its configuration
    explicit tls_server(const std::string& line = {})
        : authority_("test authority"), server_(1, options(authority_, line)) {}

    const certificate_authority& authority() const noexcept { return authority_; }
    std::string address() const { return "localhost" + endpoint().substr(endpoint().find(':')); }
    /// Where clients connect to when something stands in between.
    std::string endpoint() const { return server_.secure_endpoint(); }
    std::string address_in_the_clear() const { return server_.connect_string(); }
    test_server& process() const noexcept { return server_; }

    /// Of a client with a certificate that the server accepts.
    tls_files files(const std::string& name = "client") const {
        const certificate_authority::issued c = authority_.issue(name, {});
        return tls_files().ca(authority_.file()).certificate(c.chain, c.key);
    }

private:
    static testing::server_options options(const certificate_authority& authority, const std::string& line) {
        const certificate_authority::issued key = authority.issue("zookeeper", "DNS:localhost,IP:127.0.0.1");
        return testing::server_options().tls(key.both, authority.file()).line(line);
    }

    certificate_authority authority_;
    mutable test_server server_;
};

}  // namespace zkasio::test
