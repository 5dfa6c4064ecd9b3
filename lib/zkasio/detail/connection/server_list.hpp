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
};

/// "host[:port],..[/chroot]". Throws zkasio::error that names the part which is wrong.
server_list parse_server_list(std::string_view text, std::string_view operation);

}  // namespace zkasio::detail
