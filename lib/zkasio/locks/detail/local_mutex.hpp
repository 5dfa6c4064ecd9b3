#pragma once

#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <list>
#include <memory>
#include <string>

namespace zkasio::lock_detail {

/// A fair mutex among the coroutines of one session that name the same `path`. Asks the servers nothing.
class local_mutex final : public session_local {
public:
    /// Waits for the mutex from its construction on, then owns it; released when destroyed.
    class claim {
    public:
        /// @param from where the coroutine runs that acquires.
        claim(session on, std::string path, asio::any_io_executor from);
        claim(const claim&) = delete;
        claim& operator=(const claim&) = delete;
        ~claim() { release(); }

        /// *Completes when* the mutex is ours. *Fails with* errc::session_expired or errc::client_closed, and with
        /// errc::would_deadlock when it would never be.
        asio::awaitable<void> acquired();
        /// Whether it is ours already, or will be as soon as those ahead have left who are about to release it.
        asio::awaitable<bool> uncontended();
        /// Soon, but not yet: those who look at uncontended() meanwhile do not count this one.
        void about_to_release() noexcept;
        void release() noexcept;
        /// See lock_claim.
        void body_begins(asio::any_io_executor executor);
        void body_ends(asio::any_io_executor executor) noexcept;

    private:
        friend class local_mutex;
        struct state;
        static asio::awaitable<void> until_acquired(std::shared_ptr<state> s);
        static asio::awaitable<bool> found_free(std::shared_ptr<state> s);

        session on_;
        std::shared_ptr<state> state_;
        bool released_ = false;
    };

    void session_over(std::error_code why) noexcept override;

private:
    std::list<claim::state*> queue_;  // alive until they have left it; the first owns the mutex
    std::error_code over_;
};

}  // namespace zkasio::lock_detail
