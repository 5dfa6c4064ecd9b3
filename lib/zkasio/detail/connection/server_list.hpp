#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::detail {

struct host_port {
    std::string host;
    std::uint16_t port = 2181;
    friend bool operator==(const host_port&, const host_port&) = default;
};

struct server_list {
    std::vector<host_port> hosts;
    std::string chroot;  ///< empty, or a valid path other than "/"
    std::string text;    ///< the hosts, as they were given
    std::vector<host_port> last = {};  ///< which are tried when none of the others can be reached
};

/// "host[:port],..[/chroot]". Throws zkasio::error that names the part which is wrong.
server_list parse_server_list(std::string_view text, std::string_view operation);

/// The servers of an ensemble's configuration (/zookeeper/config), as client_options has them: "host:port,host:port".
/// A server that listens for clients on all addresses is known by those that it has for other servers; one without a
/// client address is left out, and so are lines that make no sense. Empty if none is left.
std::string servers_of_config(std::string_view config);

}  // namespace zkasio::detail
