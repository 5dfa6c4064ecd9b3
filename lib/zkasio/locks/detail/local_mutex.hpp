#pragma once

#include <zkasio/locks/detail/local_right.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <list>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::lock_detail {

/// A fair mutex among the coroutines of one session that name the same `path`. Sends no requests.
class local_mutex final : public session_local, public std::enable_shared_from_this<local_mutex> {
public:
    /// Waits for the mutex from its construction on, then owns it; released when destroyed.
    class claim final : public local_right {
    public:
        /// @param from the executor of the acquiring coroutine.
        claim(session on, std::string path, asio::any_io_executor from);
        claim(const claim&) = delete;
        claim& operator=(const claim&) = delete;
        ~claim() override { release(); }

        /// *Completes when* the claim owns the mutex.
        /// *Fails with* errc::session_expired or errc::client_closed, and with errc::would_deadlock if the wait would
        /// never end.
        asio::awaitable<void> acquired();
        /// Whether the claim owns the mutex already, or will own it once the claim ahead, which is about to release,
        /// has left.
        asio::awaitable<bool> uncontended();
        /// Announces release(): until then, uncontended() of a new claim ignores this one.
        void about_to_release() noexcept override;
        void release() noexcept override;
        void body_begins(asio::any_io_executor executor) override;
        void body_ends(asio::any_io_executor executor) noexcept override;

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
    std::list<claim::state*> queue_;  // the states of the claims that have not released yet; the first owns the mutex
    std::error_code over_;

    // Tells a user, once, of an acquire that waits for a guard of the same client: it may be the coroutine's own.
    void warn_later(const session& on);
    void warn(const session& on);
    std::optional<asio::steady_timer> warning_timer_;
    bool warned_ = false;
};

}  // namespace zkasio::lock_detail
