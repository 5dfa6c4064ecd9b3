#pragma once

#include "support/temporary_directory.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace zkasio::test {

/// An ensemble of three real ZooKeeper servers, each in a network namespace of its own, that can be cut off from each
/// other. For tests of what a partitioned client believes.
///
/// The calling thread moves to a fourth namespace, from which it reaches all three, whatever is cut; it returns with
/// the end of this object. The namespaces have no names and nothing outside of them is touched: they are gone with the
/// last process in them, and the servers are killed when the thread that has made them ends for whatever reason. Needs
/// root, and `ip`.
class networked_ensemble {
public:
    static constexpr int size = 3;
    /// What is cut off from the other two, as seen from the server.
    enum class direction { both, incoming, outgoing };

    /// Why there can be none on this machine; empty when there can.
    static std::string impossible();

    explicit networked_ensemble(std::chrono::milliseconds tick);
    ~networked_ensemble();
    networked_ensemble(const networked_ensemble&) = delete;
    networked_ensemble& operator=(const networked_ensemble&) = delete;

    /// For clients: "address:port".
    std::string server(int i) const { return "10.213." + std::to_string(i) + ".2:2181"; }
    /// "leader", "follower", or something else while there is no quorum.
    std::string mode(int i) const;
    int leader() const;  ///< -1: none at the moment

    void cut_off(int i, direction how);
    void heal(int i);

private:
    struct host {
        int network = -1;
        pid_t server = -1;
    };
    static std::string peer_address(int i) { return "10.213.9." + std::to_string(i + 1); }
    void route_between(int i, direction how, const std::string& verb);
    void end() noexcept;

    temporary_directory dir_;
    int outside_ = -1, hub_ = -1;  // namespaces of this thread
    std::vector<host> hosts_;
    std::vector<bool> deaf_, mute_;
};

}  // namespace zkasio::test
