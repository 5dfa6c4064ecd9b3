#include "support/test_server.hpp"

#include "support/transport.hpp"

#include <cstdlib>
#include <utility>

namespace zkasio::test {
namespace {

const test_server& own_server() {
    static const test_server one;
    return one;
}

// Empty: there are none, or they cannot be reached in this program's way.
std::string given_servers() {
    const char* const given = std::getenv("ZKASIO_TEST_SERVERS");
    return given && !transport::current().is_secure() ? given : "";
}

}  // namespace

test_server::test_server(int count, testing::server_options o)
    : ensemble(count, transport::current().of_servers(std::move(o))) {
    for (int i = 0; i < count; ++i) connect_string_ += (i ? "," : "") + endpoint(i);
}

std::string test_server::endpoint(int server) const { return transport::current().endpoint(*this, server); }

const std::string& shared_servers() {
    static const std::string servers = given_servers().empty() ? own_server().connect_string() : given_servers();
    return servers;
}

std::string first_server() {
    const std::string& all = shared_servers();
    return all.substr(0, all.find(','));
}

std::string ask_first_server(const std::string& four_letters) {
    return given_servers().empty() ? own_server().ask(four_letters) : four_letter_command(first_server(), four_letters);
}

}  // namespace zkasio::test
