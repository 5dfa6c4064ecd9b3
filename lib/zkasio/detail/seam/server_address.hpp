#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace zkasio::detail {

/// A server: its name as the user gave it, and its address.
struct server_address {
    std::string host;     ///< as given, a name or an address; a certificate has to match it
    std::string address;  ///< numeric, without brackets
    std::uint16_t port = 2181;
    int rank = 0;  ///< see client_options::prefer()

    /// Of servers that are tried when no other can be reached.
    static constexpr int last_rank = std::numeric_limits<int>::max();

    friend bool operator==(const server_address&, const server_address&) = default;
};

/// "10.0.0.1:2181", "[::1]:2181".
inline std::string endpoint_of(const server_address& server) {
    const bool ipv6 = server.address.find(':') != std::string::npos;
    return (ipv6 ? '[' + server.address + ']' : server.address) + ':' + std::to_string(server.port);
}

/// For messages: the endpoint, followed by the name if one was given: "10.0.0.1:2181 (zk1)".
inline std::string to_string(const server_address& server) {
    const std::string endpoint = endpoint_of(server);
    return server.host == server.address ? endpoint : endpoint + " (" + server.host + ')';
}

}  // namespace zkasio::detail
