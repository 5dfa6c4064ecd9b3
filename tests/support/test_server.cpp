#include "support/test_server.hpp"

#include <cstdlib>

namespace zkasio::test {

const std::string& shared_servers() {
    static const std::string servers = [] {
        if (const char* given = std::getenv("ZKASIO_TEST_SERVERS"); given && *given) return std::string(given);
        static test_server own;
        return own.connect_string();
    }();
    return servers;
}

std::string first_server() {
    const std::string& all = shared_servers();
    return all.substr(0, all.find(','));
}

}  // namespace zkasio::test
