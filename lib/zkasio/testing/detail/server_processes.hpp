#pragma once

#include <zkasio/testing/detail/peer_network.hpp>
#include <zkasio/testing/ensemble.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace zkasio::testing_detail {

/// Tells what is missing for servers on this machine, and what to do; empty: nothing.
std::string why_no_servers(const testing::server_options& options);

/// The processes of an ensemble's servers. All members block, and end early, with asio::error::operation_aborted, when
/// `cancelled` is set. For one thread, except the members marked below.
class server_processes {
public:
    using flag = std::atomic<bool>;

    server_processes(int count, testing::server_options options);
    ~server_processes();
    server_processes(const server_processes&) = delete;
    server_processes& operator=(const server_processes&) = delete;

    void start_all(const flag& cancelled);
    void start(int server, const flag& cancelled);
    void stop(int server, const flag& cancelled);
    void kill(int server);
    void pause(int server, const flag& cancelled);
    void resume(int server);
    /// Sets whether two servers may talk to each other. Throws std::logic_error without server_options::partitions().
    void connect(int a, int b, bool on);

    // From any thread.
    int size() const noexcept { return static_cast<int>(nodes_.size()); }
    static std::string address(int server) { return "127.0.0." + std::to_string(server + 1); }
    std::uint16_t port(int server) const { return at(server).port; }
    std::uint16_t secure_port(int server) const { return at(server).secure_port; }
    const std::string& connect_string() const noexcept { return connect_string_; }
    std::string ask(const std::string& four_letters, int server) const;
    std::string mode(int server) const;
    /// -1: no leader, or only `other_than`.
    int leader(int other_than = -1) const;
    int wait_for_leader(int other_than, const flag& cancelled) const;
    std::string log(int server) const;

private:
    struct node {
        std::uint16_t port = 0, secure_port = 0;
        pid_t pid = -1;
        bool paused = false, starting = false;
    };
    node& at(int server) { return nodes_.at(static_cast<std::size_t>(server)); }
    const node& at(int server) const { return nodes_.at(static_cast<std::size_t>(server)); }
    std::string dir_of(int server) const { return dir_ + "/" + std::to_string(server); }
    void choose_ports();
    void configure(int server) const;
    std::vector<std::string> command(int server) const;
    void launch(int server);
    bool runs(int server);
    pid_t running(int server, const char* asked_by);
    bool accepts_tls(int server) const;
    bool serves(int server);
    std::vector<int> who_can_serve_with(int server);
    bool ends_within(int server, std::chrono::nanoseconds limit, const flag& cancelled);
    [[noreturn]] void give_up(const std::string& what, int server) const;

    const testing::server_options options_;
    std::string java_, class_path_, dir_, connect_string_;
    std::vector<node> nodes_;
    std::vector<std::string> members_;  // the configuration lines that name the servers
    std::unique_ptr<peer_network> peers_;
};

}  // namespace zkasio::testing_detail
