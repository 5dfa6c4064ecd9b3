#pragma once

#include <zkasio/testing/detail/relay.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace zkasio::testing_detail {

/// What the servers of an ensemble say to each other passes here: a proxy for each two of them, direction, and port.
///
/// All servers have the same configuration, which the leader hands out to the others anyway, with names instead of
/// addresses. What a name means is said by a file that each server has for itself (jdk.net.hosts.file): its own name is
/// its own address, that of another server is the address of the proxy between the two, 127.FROM.1.TO. The ports are
/// the same. Where a server tells its own address all the same, in the first message to another one's election port,
/// for that one to connect back (ZOOKEEPER-107), it is replaced by one of a proxy, of the same length.
class peer_network {
public:
    struct ports {
        std::uint16_t quorum = 0, election = 0;
    };

    /// Listens. Throws std::system_error when no ports can be had.
    explicit peer_network(int servers);
    ~peer_network();
    peer_network(const peer_network&) = delete;
    peer_network& operator=(const peer_network&) = delete;

    const ports& of(int server) const { return ports_.at(static_cast<std::size_t>(server)); }
    static std::string name_of(int server) { return "zk" + std::to_string(server + 1); }
    /// The text of the file.
    std::string hosts(int server) const;

    /// Whether connections from `a` to `b`, and back, stand and are let through. They break at once when not. Blocks
    /// until that is so.
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
    std::vector<char> cut_;  // by index(); of the caller
    const relay_rules rules_;
    std::thread thread_;
};

/// Replaces the address of the sender in the first message of an election's connection. True: it was all there.
bool replace_own_address(std::string& message, const std::string& by);

}  // namespace zkasio::testing_detail
