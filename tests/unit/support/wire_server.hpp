#pragma once

#include "support/jute_writer.hpp"

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

/// A server in the test's own event loop, on the loopback: for clients over the C library. What it answers is the
/// test's to say, in bytes. By itself it answers pings, credentials, watches that are set again, and goodbyes.
class wire_server {
public:
    struct request {
        std::int32_t xid, type;
        std::string body;
    };
    struct outcome {
        std::int32_t failure = 0;
        std::string body = {};
        bool hangs_up = false;  ///< behind the answer
        bool is_silent = false;  ///< no answer
    };
    struct session {
        std::int64_t id = 0x1001;
        std::int32_t timeout_ms = 10'000;
        bool is_read_only = false;
        bool is_zookeepers = true;  ///< false: as ClickHouse Keeper, without a password, and says nothing of read_only
        std::int32_t version = 0;
    };
    /// The parts of a handshake that tests look at.
    struct handshake {
        std::int64_t session;
        std::string password;
        bool allows_read_only;
    };

    explicit wire_server(const asio::any_io_executor& executor);

    std::string address() const;
    /// Ends all connections, and accepts no more.
    void close();
    /// Ends all connections.
    void cut();
    /// To all connections: an event of a watch.
    void tell(std::int32_t type, const std::string& path);
    /// To all connections: the answer to a request for which `answer` was silent.
    void answer_late(const request& r, const outcome& o);

    // ----------------------------------------------------------------------------------------------- the script
    /// Nothing: it hangs up.
    std::function<std::optional<session>(const handshake&)> greet = [](const handshake&) { return session(); };
    std::function<outcome(const request&)> answer = [](const request&) { return outcome{-101}; };
    bool is_frozen = false;  ///< no answer to anything, to no ping either
    std::int32_t auth_failure = 0;
    std::string mode = "Mode: standalone\n";  ///< the answer to "srvr"

    // ------------------------------------------------------------------------------------------ what it has seen
    std::size_t visits = 0;  ///< with "srvr"
    std::vector<handshake> handshakes;
    std::vector<std::int32_t> types;  ///< of all requests, without pings and the client's own reads of its root
    std::size_t reads_of_root = 0;
    std::size_t count(std::int32_t type) const;

private:
    struct connection;
    asio::awaitable<void> accept();
    asio::awaitable<void> talk(std::shared_ptr<connection> c);
    outcome answer_to(const request& r);

    asio::ip::tcp::acceptor acceptor_;
    std::list<std::weak_ptr<connection>> connections_;
};

/// The first string of a request's body, mostly its path.
std::string path_in(const wire_server::request& r);

}  // namespace zkasio::test
