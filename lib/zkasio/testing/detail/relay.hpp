#pragma once

#include <zkasio/asio_version.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

namespace zkasio::testing_detail {

/// The current rules for all connections of a proxy.
struct relay_rules {
    bool silent = false;
    std::chrono::milliseconds delay{0};
};

/// One connection through a proxy: the data of one side, and its end, reach the other side in this order, be it at
/// once, after a delay, or after a silence. Never blocks: a side that does not read keeps only the other side waiting.
class relay : public std::enable_shared_from_this<relay> {
public:
    static constexpr std::size_t never = static_cast<std::size_t>(-1);

    /// @param rules belong to the owner of the loop, and may change: see rules_changed().
    relay(asio::io_context& io, asio::ip::tcp::socket client, const relay_rules& rules);

    // Before begin().
    /// The connection ends when this many bytes have passed in that direction.
    void limit(std::size_t requests, std::size_t replies, bool by_reset) {
        requests_.limit = requests;
        replies_.limit = replies;
        limits_reset_ = by_reset;
    }
    /// `edit` is called with the first data of the client until it returns true, and may change the data.
    void edit_beginning(std::function<bool(std::string&)> edit) { edit_ = std::move(edit); }

    void begin(const asio::ip::tcp::endpoint& server);
    /// Ends the connection of both sides, by a reset or regularly. Data under way is lost.
    void cut(bool by_reset);
    void rules_changed();

private:
    struct item {
        std::chrono::steady_clock::time_point due;
        std::string bytes;  // empty: the sending side has ended
    };
    struct direction {
        direction(asio::ip::tcp::socket& f, asio::ip::tcp::socket& t, asio::io_context& io)
            : from(f), to(t), timer(io) {}
        asio::ip::tcp::socket &from, &to;
        asio::steady_timer timer;
        std::array<char, 16384> buffer;
        std::deque<item> under_way;
        std::size_t size_under_way = 0, passed = 0, limit = never;
        bool reading = false, writing = false, waiting = false, ended = false;
    };

    void read(direction& d);
    void arrived(direction& d, std::string bytes);
    void write(direction& d);
    void wrote(direction& d, std::error_code failed);
    void end(direction& d);

    asio::ip::tcp::socket client_, server_;
    const relay_rules& rules_;
    direction requests_, replies_;
    std::function<bool(std::string&)> edit_;
    std::string beginning_;
    bool limits_reset_ = true, cut_ = false;
};

}  // namespace zkasio::testing_detail
