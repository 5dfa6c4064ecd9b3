// Linked with the tests of tests/faults, it leads them through TLS.

#include "support/transport.hpp"
#include "tls/certificates.hpp"

#include <zkasio/tls/tls_options.hpp>

#include <utility>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Servers and clients know each other by certificates of one authority.
class transport_through_tls final : public transport {
public:
    transport_through_tls() { use(*this); }

    bool is_secure() const override { return true; }
    client_options of_clients(client_options o) const override { return o.tls(keys().how); }
    testing::server_options of_servers(testing::server_options o) const override {
        return o.tls(keys().server.both, keys().authority.file());
    }
    std::string endpoint(const testing::ensemble& servers, int server) const override {
        return servers.secure_endpoint(server);
    }

private:
    // When they are needed: ctest only asks for the names of the tests.
    struct keys_of_all {
        certificate_authority authority{"faults"};
        certificate_authority::issued server =
            authority.issue("server", "DNS:localhost,IP:127.0.0.1,IP:127.0.0.2,IP:127.0.0.3");
        certificate_authority::issued client = authority.issue("client", "");
        tls_options how = tls_files().ca(authority.file()).certificate(client.chain, client.key);
    };
    static const keys_of_all& keys() {
        static const keys_of_all all;
        return all;
    }
};

const transport_through_tls through_tls;

}  // namespace
