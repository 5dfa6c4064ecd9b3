#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/queues/detail/item_layout.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::queue_detail {

/// The time by the servers' clocks. Asks until there is an answer. @param on patient. @param with receipts of `on`.
asio::awaitable<server_time> ask_servers_time(session on, receipts with, std::string operation);

/// The servers' clock, for items that are due at a time of it. On the strand.
class due_clock {
public:
    /// @param wake called when the time of wake_at() has come; may be called once more after forget().
    due_clock(session on, receipts with, std::function<void()> wake);

    /// A little earlier than the servers' time, by the time that an answer takes. Asks the servers once a minute.
    asio::awaitable<server_time> now();
    /// Replaces the last wake_at(). Long waits end before their time.
    void wake_at(server_time due, server_time now);
    /// Gives the timer up.
    void forget() noexcept { timer_.reset(); }

private:
    const session on_;
    const receipts receipts_;
    const std::function<void()> wake_;

    std::shared_ptr<asio::steady_timer> timer_;
    std::optional<server_time> asked_;  // a time that the servers' clock had reached at `asked_at_`
    boot_clock::time_point asked_at_;
};

}  // namespace zkasio::queue_detail
