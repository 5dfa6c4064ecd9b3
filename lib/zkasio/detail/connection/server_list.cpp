#include <zkasio/detail/connection/server_list.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <asio/ip/address.hpp>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

namespace zkasio::detail {
namespace {

[[noreturn]] void refuse(std::string_view operation, std::string_view server, const std::string& why) {
    throw error(errc::invalid_argument, operation, {}, "server \"" + std::string(server) + "\": " + why);
}

host_port parse_one(std::string_view text, std::string_view operation) {
    const std::string_view all = text;
    if (text.find_first_of(" \t\r\n") != text.npos)
        refuse(operation, all, "character not allowed in a host name: no spaces, no ends of lines");
    host_port result;
    std::string_view port;
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) refuse(operation, all, "missing ']'");
        result.host = text.substr(1, close - 1);
        text.remove_prefix(close + 1);
        if (!text.empty() && text.front() != ':') refuse(operation, all, "':port' expected after ']'");
        port = text;
    } else {
        const std::size_t colon = text.find(':');
        // Two colons are no IPv6 address, unless they stand side by side.
        const bool as_in_zoo_cfg =
            std::count(text.begin(), text.end(), ':') == 2 && colon > 0 && text.find("::") == text.npos;
        if (as_in_zoo_cfg)
            refuse(operation, all,
                   "one port, that for clients: host:port (the others, of a line server.N=, are the servers' own)");
        if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos)
            refuse(operation, all, "write an IPv6 address in brackets: [::1]:2181");
        result.host = text.substr(0, colon);
        if (colon != std::string_view::npos) port = text.substr(colon);
    }
    if (result.host.empty()) refuse(operation, all, "the host is empty");
    if (result.host.find_first_of("\"'\\@[]") != std::string::npos || result.host.find('\0') != std::string::npos)
        refuse(operation, all, "character not allowed in a host name");
    if (!port.empty()) {
        port.remove_prefix(1);
        unsigned value = 0;
        const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), value);
        if (ec != std::errc() || end != port.data() + port.size() || value == 0 || value > 65535)
            refuse(operation, all, "a port is a number from 1 to 65535");
        result.port = static_cast<std::uint16_t>(value);
    }
    return result;
}

}  // namespace

server_list parse_server_list(std::string_view text, std::string_view operation) {
    server_list result;
    // Formats of other programs, which would otherwise lead to misleading errors about their parts.
    if (const std::size_t backup = text.find("?backup="); backup != text.npos)
        refuse(operation, text,
               "no \"?backup=\" belongs here, and no scheme: all servers stand in one list, host:port,host:port");
    if (const std::size_t scheme = text.find("://"); scheme != text.npos && scheme < text.find_first_of(",/"))
        refuse(operation, text.substr(0, text.find(',')),
               "no \"" + std::string(text.substr(0, scheme + 3)) + "\" belongs here: a server is host:port");
    if (text.find(';') < text.find('/')) refuse(operation, text, "servers are separated by ',', not by ';'");
    const std::size_t slash = text.find('/');
    if (slash != std::string_view::npos && slash + 1 < text.size()) {
        result.chroot = text.substr(slash);
        // Legal in a path, but surely a mistake: "a:2181/app,b:2181/app".
        for (std::size_t comma = result.chroot.find(','); comma != std::string::npos;
             comma = result.chroot.find(',', comma + 1)) {
            const std::string_view part = std::string_view(result.chroot).substr(comma + 1);
            const std::string_view host = part.substr(0, part.find_first_of(",/"));
            const std::size_t colon = host.rfind(':');
            if (colon != host.npos && colon + 1 < host.size() &&
                host.find_first_not_of("0123456789", colon + 1) == host.npos)
                refuse(operation, text, "the chroot stands once, behind the last server");
        }
        if (const std::string problem = path_problem(result.chroot); !problem.empty())
            throw error(errc::invalid_argument, operation, result.chroot, "chroot: " + problem);
        if (belongs_to_servers(result.chroot))
            throw error(errc::invalid_argument, operation, result.chroot, "chroot: /zookeeper belongs to the server");
    }
    std::string_view rest = result.text = text.substr(0, slash);
    for (;;) {
        const std::size_t comma = rest.find(',');
        result.hosts.push_back(parse_one(rest.substr(0, comma), operation));
        if (comma == std::string_view::npos) return result;
        rest.remove_prefix(comma + 1);
    }
}

namespace {

// The host of "host:..." or "[host]:...", without brackets; `text` loses it.
std::string_view take_host(std::string_view& text) {
    const bool bracket = text.starts_with('[');
    const std::size_t end = bracket ? text.find(']') : std::min(text.find_first_of(":|"), text.size());
    if (end == text.npos) return {};
    const std::string_view host = text.substr(bracket ? 1 : 0, end - (bracket ? 1 : 0));
    text.remove_prefix(end + (bracket ? 1 : 0));
    return host;
}

bool is_any_address(std::string_view host) {
    std::error_code failed;
    const asio::ip::address address = asio::ip::make_address(std::string(host), failed);
    return host.empty() || (!failed && address.is_unspecified());
}

// The hosts of "<host>:<port>:<port>|<host>:<port>:<port>...:<role>".
std::vector<std::string_view> hosts_of(std::string_view addresses) {
    std::vector<std::string_view> hosts;
    for (;;) {
        hosts.push_back(take_host(addresses));
        const std::size_t bar = addresses.find('|');
        if (bar == addresses.npos) return hosts;
        addresses.remove_prefix(bar + 1);
    }
}

bool is_server(const std::string& text) {
    if (text.size() > 300 || text.find_first_of(",;|/") != text.npos) return false;
    try {
        parse_one(text, "follow_ensemble");
        return true;
    } catch (const error&) {
        return false;
    }
}

// The servers of server.<id>=<host>:<port>:<port>[|<host>:<port>:<port>...][:<role>];[[<client host>]:]<client port>
std::vector<std::string> servers_of_line(std::string_view line) {
    const std::size_t equals = line.find('='), semicolon = line.find(';');
    if (!line.starts_with("server.") || semicolon == line.npos || equals > semicolon) return {};
    std::string_view of_clients = line.substr(semicolon + 1);
    const std::string_view host = of_clients.find(':') == of_clients.npos ? std::string_view() : take_host(of_clients);
    if (of_clients.starts_with(':')) of_clients.remove_prefix(1);
    std::vector<std::string_view> hosts{host};
    if (is_any_address(host)) hosts = hosts_of(line.substr(equals + 1, semicolon - equals - 1));
    std::vector<std::string> servers;
    for (const std::string_view h : hosts) {
        const bool v6 = h.find(':') != h.npos;
        servers.push_back((v6 ? "[" : "") + std::string(h) + (v6 ? "]:" : ":") + std::string(of_clients));
    }
    std::erase_if(servers, [](const std::string& s) { return s.ends_with(':') || !is_server(s); });
    return servers;
}

}  // namespace

std::string servers_of_config(std::string_view config) {
    constexpr std::size_t most = 255;  // as many as there are ids
    std::string all;
    std::set<std::string> known;
    while (!config.empty() && known.size() < most) {
        std::string_view line = config.substr(0, config.find('\n'));
        config.remove_prefix(std::min(line.size() + 1, config.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        for (const std::string& server : servers_of_line(line))
            if (known.insert(server).second) all += (all.empty() ? "" : ",") + server;
    }
    return all;
}

}  // namespace zkasio::detail
