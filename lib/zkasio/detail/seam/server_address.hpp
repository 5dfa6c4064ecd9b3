#pragma once

#include <cstdint>
#include <string>

namespace zkasio::detail {

/// A server: what the user calls it, and where it is.
struct server_address {
    std::string host;     ///< as it was given, a name or an address: what a certificate has to be for
    std::string address;  ///< numeric, without brackets
    std::uint16_t port = 2181;

    friend bool operator==(const server_address&, const server_address&) = default;
};

/// "10.0.0.1:2181", "[::1]:2181".
std::string endpoint_of(const server_address& server);

/// For messages: the endpoint, and behind it the name where one was given: "10.0.0.1:2181 (zk1)".
std::string to_string(const server_address& server);

}  // namespace zkasio::detail
