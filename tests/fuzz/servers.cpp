// Connect strings: "host[:port],...[/chroot]".
#include "fuzz/fuzz.hpp"

#include <zkasio/detail/connection/server_list.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <zklock/four_letters.hpp>

namespace {

using namespace zkasio::fuzz;
using zkasio::detail::server_list;

std::string print(const server_list& list) {
    std::string text;
    for (const auto& [host, port] : list.hosts) {
        const bool is_ipv6 = host.find(':') != std::string::npos;
        text += (text.empty() ? "" : ",") + (is_ipv6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
    }
    return text + list.chroot;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = view(data, size);
    server_list list;
    try {
        list = zkasio::detail::parse_server_list(text, "connect");
    } catch (const zkasio::error& e) {
        require(e.code() == zkasio::errc::invalid_argument, "only invalid_argument is documented", e.what());
        return 0;
    }
    require(!list.hosts.empty(), "there is a server", text);
    for (const auto& [host, port] : list.hosts) {
        require(port != 0, "a port is not 0", text);
        require(!host.empty() && host.find_first_of(std::string_view(" \t\r\n,/@[]\"'\\\0", 13)) == std::string::npos,
                "a host is one", text);
    }
    require(list.chroot.empty() || (list.chroot != "/" && zkasio::path_problem(list.chroot).empty()),
            "a chroot is a path", text);
    const server_list again = zkasio::detail::parse_server_list(print(list), "connect");
    require(again.hosts == list.hosts && again.chroot == list.chroot, "what is printed is read again", text);
    require(zkasio::detail::parse_server_list(list.text + list.chroot, "connect").hosts == list.hosts,
            "the text that is kept says the same", text);

    // zklock asks the servers one by one.
    const auto servers = zklock::split_servers(text);
    require(servers.size() == list.hosts.size(), "zklock finds as many servers", text);
    for (std::size_t i = 0; i < servers.size(); ++i)
        require(servers[i].host == list.hosts[i].host && std::stoul(servers[i].port) == list.hosts[i].port,
                "zklock finds the same servers", text);
    return 0;
}
