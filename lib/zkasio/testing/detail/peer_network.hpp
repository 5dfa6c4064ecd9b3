#pragma once

#include <zkasio/testing/detail/relay.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace zkasio::testing_detail {

/// The network among the servers of an ensemble: a proxy for each pair of servers, direction, and port.
///
/// All servers have the same configuration, which the leader hands out to the others anyway, with names instead of
/// addresses. A file that each server has for itself (jdk.net.hosts.file) maps the names to addresses: the server's own
/// name to its own address, the name of another server to the address of the proxy between the two, 127.FROM.1.TO. The
/// ports are the same. The first message to another server's election port has an address nevertheless: the sender's
/// own, for the receiver to connect back (ZOOKEEPER-107). This address is replaced by one of a proxy, of the same
/// length.
class peer_network {
public:
    struct ports {
        std::uint16_t quorum = 0, election = 0;
    };

    /// Starts to listen. Throws std::system_error if no ports are available.
    explicit peer_network(int servers);
    ~peer_network();
    peer_network(const peer_network&) = delete;
    peer_network& operator=(const peer_network&) = delete;

    const ports& of(int server) const { return ports_.at(static_cast<std::size_t>(server)); }
    static std::string name_of(int server) { return "zk" + std::to_string(server + 1); }
    /// The text of the server's hosts file.
    std::string hosts(int server) const;

    /// If `on`, connections from `a` to `b`, and back, are let through. If not, existing ones break at once, and new
    /// ones are refused. Blocks until the change is effective.
    void connect(int a, int b, bool on);
    bool are_connected(int a, int b) const { return !cut_[index(a, b)]; }

private:
    struct gate;
    std::size_t index(int from, int to) const {
        return static_cast<std::size_t>(from) * ports_.size() + static_cast<std::size_t>(to);
    }
    void listen(int to);
    void accept(gate& g);
    void begin(gate& g, asio::ip::tcp::socket from);

    asio::io_context io_;
    std::vector<ports> ports_;
    std::vector<std::unique_ptr<gate>> gates_;
    std::vector<char> cut_;  // by index(); used by the calling thread only
    const relay_rules rules_;
    std::thread thread_;
};

/// Replaces the address of the sender in the first message of an election's connection. True: no more bytes are needed.
bool replace_own_address(std::string& message, const std::string& by);

}  // namespace zkasio::testing_detail
