#pragma once

#include <zkasio/session.hpp>
#include <zkasio/session_part.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <deque>
#include <memory>
#include <string>

namespace zkasio::recipes::detail {

/// Lets those of one session who want the same thing through one by one, in order, without asking the servers.
class turnstile final : public session_part {
public:
    /// A place in the line; destroyed, it lets the next one through.
    class pass {
    public:
        /// @param from where the coroutine runs that wants to pass.
        pass(session on, std::string path, asio::any_io_executor from);
        pass(const pass&) = delete;
        pass& operator=(const pass&) = delete;
        ~pass() { done(); }

        /// *Completes when* it is our turn. *Fails with* errc::session_expired or errc::client_closed, and with
        /// errc::would_deadlock when it would never be.
        asio::awaitable<void> turn();
        /// Whether it is our turn already, or will be as soon as those ahead have left who are leaving.
        asio::awaitable<bool> now();
        /// The next one's turn will come soon; but not before done().
        void leaving() noexcept;
        void done() noexcept;
        /// See lock_claim.
        void body_begins(asio::any_io_executor executor);
        void body_ends(asio::any_io_executor executor) noexcept;

    private:
        friend class turnstile;
        struct state;
        static asio::awaitable<void> turn_of(std::shared_ptr<state> s);
        static asio::awaitable<bool> is_first(std::shared_ptr<state> s);

        session on_;
        std::shared_ptr<state> state_;
        bool done_ = false;
    };

    void session_over(std::error_code why) noexcept override;

private:
    std::deque<pass::state*> line_;  // alive until they have left it
    std::error_code over_;
};

}  // namespace zkasio::recipes::detail
