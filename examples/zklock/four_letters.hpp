#pragma once

#include <zkasio/asio_version.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace zklock {

/// One server of a connect string.
struct server_name {
    std::string host, port;
    std::string text() const { return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port; }
};

/// "a:2181,[::1]/chroot" -> a:2181, ::1:2181
std::vector<server_name> split_servers(std::string_view connect_string);

/// The server's answer to one of ZooKeeper's four-letter commands, which may be "" or a refusal. *Fails with*
/// std::system_error when it cannot be reached in time.
asio::awaitable<std::string> ask_server(server_name server, std::string four_letters, std::chrono::milliseconds limit);

/// What stands behind `key` in such an answer, up to the end of the line; "" when nothing does.
std::string value_of(std::string_view answer, std::string_view key);

}  // namespace zklock
