#pragma once

#include <zkasio/detail/base/strand.hpp>
#include <zkasio/detail/connection/server_list.hpp>
#include <zkasio/detail/seam/server_address.hpp>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::detail {

/// Whether the host is an address, and not a name.
bool is_numeric(const std::string& host);

/// Turns a server list into numeric addresses, off the loop. Numeric hosts need no look-up (and no resolver). A server
/// with several names appears with each of them.
class name_resolver {
public:
    explicit name_resolver(strand_type strand) : strand_(std::move(strand)) {}

    /// `failure` names the hosts without an address; both may be non-empty. Called once; or, if some names take longer
    /// than `patience`, first with the servers that are known by then, and again with each answer. A name that is still
    /// being looked up has the addresses of its last look-up, if there was one.
    using on_resolved = std::function<void(std::vector<server_address> servers, std::string failure)>;

    /// Calls `done` on the strand, possibly before resolve() returns. cancel() supersedes the call, and so does a later
    /// call for other hosts. A later call for the same hosts waits for the look-up that is under way, which may take
    /// longer than the pause until the next call.
    void resolve(std::shared_ptr<void> keep_alive, const std::vector<host_port>& hosts, on_resolved done);
    void cancel();

    static constexpr std::chrono::seconds patience{1};

private:
    struct answer {
        host_port asked;
        bool pending = false;
        std::vector<server_address> servers;
    };
    struct round {
        std::vector<host_port> hosts;
        std::vector<answer> answers;  // one for each of `hosts`
        std::string failure;
        std::size_t pending = 1;
        bool late = false;  // `patience` is over
        on_resolved done;
    };
    void look_up(std::shared_ptr<void> keep_alive, const std::shared_ptr<round>& r, std::size_t at);
    void wait(std::shared_ptr<void> keep_alive, const std::shared_ptr<round>& r);
    void arrived(const std::shared_ptr<round>& r);
    std::vector<server_address> known(const round& r) const;

    strand_type strand_;
    std::unique_ptr<asio::ip::tcp::resolver> resolver_;
    std::unique_ptr<asio::steady_timer> timer_;
    std::shared_ptr<round> current_;
    std::vector<answer> last_;  // of the last look-up that has ended
};

}  // namespace zkasio::detail
