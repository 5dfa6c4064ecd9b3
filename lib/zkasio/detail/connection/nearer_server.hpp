#pragma once

#include <zkasio/detail/base/strand.hpp>
#include <zkasio/detail/seam/server_address.hpp>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::detail {

/// The endpoints in the order in which they are to be tried: a lower rank first; within a rank as they are listed,
/// beginning behind `last`, which was tried last.
std::vector<std::string> next_round(const std::vector<server_address>& servers, const std::string& last);

/// Whether one of the servers of lower ranks has been up for a while: a client that is connected to another one asks.
/// That is when it has said so twice in a row, by the command "srvr", or by accepting a connection where it expects TLS
/// or does not know the command. On the strand.
class nearer_server {
public:
    struct pace {
        std::chrono::milliseconds first, again;  ///< and up to as long again, at random
        std::chrono::milliseconds patience;      ///< for an attempt
    };

    /// @param wanted whether a server is wanted at all, which is asked before each step
    nearer_server(strand_type strand, bool through_tls, std::function<bool()> wanted)
        : strand_(std::move(strand)), through_tls_(through_tls), wanted_(std::move(wanted)) {}
    nearer_server(const nearer_server&) = delete;
    nearer_server& operator=(const nearer_server&) = delete;

    /// Calls `found` once; instead of what was looked for before. Nothing is done without a server.
    void look(std::shared_ptr<void> keep_alive, pace p, std::vector<server_address> among,
              std::function<void(const server_address&)> found);
    void stop() noexcept;
    /// The client leaves its server for one that was found. The pauses are doubled, up to 64 times, until
    void tried() noexcept { tried_ = std::min(tried_ + 1, 6); }
    /// one of them has taken it.
    void taken() noexcept { tried_ = 0; }

private:
    struct search;
    struct step;  ///< a search, and what keeps the owner alive: only handlers have both
    void wait(step s, std::chrono::milliseconds pause);
    void attempt(step s);
    void connected(step s);
    void attempted(step s, bool success);

    strand_type strand_;
    const bool through_tls_;
    const std::function<bool()> wanted_;
    int tried_ = 0;
    std::shared_ptr<search> current_;
};

}  // namespace zkasio::detail
