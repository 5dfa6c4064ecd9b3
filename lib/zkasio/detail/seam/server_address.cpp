#include <zkasio/detail/seam/server_address.hpp>

namespace zkasio::detail {

std::string endpoint_of(const server_address& server) {
    const bool ipv6 = server.address.find(':') != std::string::npos;
    return (ipv6 ? '[' + server.address + ']' : server.address) + ':' + std::to_string(server.port);
}

std::string to_string(const server_address& server) {
    const std::string endpoint = endpoint_of(server);
    return server.host == server.address ? endpoint : endpoint + " (" + server.host + ')';
}

}  // namespace zkasio::detail
