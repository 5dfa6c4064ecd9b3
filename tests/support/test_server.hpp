#pragma once

#include <zkasio/testing/ensemble.hpp>

#include <string>

namespace zkasio::test {

using testing::four_letter_command;
using testing::free_port;

/// A line of their configuration: sessions of up to a minute, where servers grant 10 s otherwise. For leases that
/// outlive the start of a server on a machine that is busy.
inline constexpr const char* long_sessions = "maxSessionTimeout=60000";

/// Servers of a test's own, where the current transport finds them. They grant long_sessions.
class test_server : public testing::ensemble {
public:
    explicit test_server(int count = 1, testing::server_options o = {});
    std::string endpoint(int server = 0) const;
    const std::string& connect_string() const noexcept { return connect_string_; }

private:
    std::string connect_string_;
};

/// The servers that the tests share: $ZKASIO_TEST_SERVERS, or one of our own for this process, as it is with every
/// transport that is secure.
const std::string& shared_servers();

/// The first of shared_servers().
std::string first_server();

/// What that says to one of ZooKeeper's four-letter commands.
std::string ask_first_server(const std::string& four_letters);

}  // namespace zkasio::test
