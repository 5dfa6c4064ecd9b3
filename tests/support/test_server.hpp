#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace zkasio::test {

/// A real ZooKeeper server of our own, or several that form an ensemble: for tests that stop, pause and kill servers.
/// Blocking, for use outside the event loop. Ends its processes.
class test_server {
public:
    /// @param count 1, or 3 for an ensemble on 127.0.0.1, .2 and .3.
    /// @param environment of the processes, more than this one's: "NAME=value". See scripts/zookeeper_server.sh.
    explicit test_server(int count = 1, std::vector<std::string> environment = {});
    ~test_server();
    test_server(const test_server&) = delete;
    test_server& operator=(const test_server&) = delete;

    const std::string& connect_string() const noexcept { return connect_string_; }
    std::string address(int server = 0) const { return "127.0.0." + std::to_string(server + 1); }
    std::uint16_t port(int server = 0) const { return nodes_[static_cast<std::size_t>(server)].port; }

    void kill(int server = 0);     ///< SIGKILL, and waits for its end
    void start(int server = 0);    ///< again, with the data that it had; waits until it serves
    void pause(int server = 0);    ///< SIGSTOP
    void resume(int server = 0);   ///< SIGCONT

    /// The answer to one of ZooKeeper's four-letter commands: "wchp", "cons", "srvr".
    std::string ask(const std::string& four_letters, int server = 0) const;

private:
    struct node {
        std::uint16_t port = 0;
        pid_t pid = -1;
    };
    void launch(int server);
    void wait_until_serving(int server) const;

    std::string dir_, connect_string_;
    std::vector<node> nodes_;
    std::vector<std::string> ensemble_, environment_;
};

/// The servers that the tests share: $ZKASIO_TEST_SERVERS, or one of our own for this process.
const std::string& shared_servers();

/// The first of shared_servers().
std::string first_server();

/// `four_letters` at "host:port", blocking.
std::string four_letter_command(const std::string& host_port, const std::string& four_letters);

/// A port of this address that nobody listens on.
std::uint16_t free_port(const std::string& address = "127.0.0.1");

}  // namespace zkasio::test
