#include "support/test_server.hpp"

#include "support/surroundings.hpp"
#include "support/transport.hpp"

#include <utility>

namespace zkasio::test {

test_server::test_server(int count, testing::server_options o)
    : ensemble(count, transport::current().of_servers(std::move(o.line(long_sessions)))) {
    for (int i = 0; i < count; ++i) connect_string_ += (i ? "," : "") + endpoint(i);
}

std::string test_server::endpoint(int server) const { return transport::current().endpoint(*this, server); }

const std::string& shared_servers() {
    static const std::string servers = surroundings::current().servers();
    return servers;
}

std::string first_server() {
    const std::string& all = shared_servers();
    return all.substr(0, all.find(','));
}

}  // namespace zkasio::test
