#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::test {

/// What a server lacks that behaves like one of another kind or version.
struct limits {
    static constexpr std::int32_t no_answer = 0;
    /// Requests, and steps of transactions, that it does not know: it hangs up, behind an answer with this code.
    std::map<std::int32_t, std::int32_t> unknown;
    /// A client that resumes a session gets a new one, as if it had asked for that. The old one ends when it times out.
    bool forgets_sessions = false;
    /// Its answer to a handshake says nothing of being read-only, as before 3.4, and has no password.
    bool short_handshake = false;
    /// The pzxid of a node never changes, and its cversion changes more often than its children.
    bool strange_stats = false;

    /// "zookeeper-3.4", "zookeeper-3.5", "keeper-25.11", "keeper-26.3", "keeper-26.7" or "worst". Throws
    /// std::invalid_argument for another name.
    static limits of(std::string_view name);
    static const std::vector<std::string_view>& names();
};

/// In front of a real server: for the clients of address(), a server that knows less. On a thread of its own; all
/// members may be called from any thread. The destructor ends the connections.
class limited_server {
public:
    /// @param server "address:port", numeric.
    limited_server(const std::string& server, limits what);
    ~limited_server();
    limited_server(const limited_server&) = delete;
    limited_server& operator=(const limited_server&) = delete;

    std::string address() const;

    std::size_t connections() const;         ///< accepted so far
    std::size_t hang_ups() const;            ///< connections that it has ended because of a request
    std::size_t sessions_forgotten() const;  ///< clients that have got another session than they had
    std::size_t asked(std::int32_t opcode) const;  ///< requests, and steps of transactions
    /// "hung up at: 15 twice ..."; for a log.
    std::string report() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace zkasio::test
