#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/connection/auth_list.hpp>
#include <zkasio/detail/connection/link.hpp>
#include <zkasio/detail/session/event_feed.hpp>
#include <zkasio/detail/session/session_record.hpp>
#include <zkasio/detail/telemetry/logger.hpp>
#include <zkasio/detail/telemetry/telemetry.hpp>
#include <zkasio/session_event.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// The current session, its state, and what is known of the end of this and of earlier sessions. On the strand, except
/// state() and shared().
class session_keeper {
public:
    using clock = boot_clock;
    using duration = clock::duration;
    using time_point = clock::time_point;

    /// Throws zkasio::error for credentials that make no sense.
    session_keeper(const client_options& options, link& l, event_feed& events, const logger& log,
                   telemetry& t);

    session_state state() const noexcept { return state_.load(std::memory_order_acquire); }
    session_record_ptr shared() const;
    const session_record_ptr& current() const noexcept { return record_; }
    /// There will be no other session: the current one has expired, or was refused.
    bool is_final() const noexcept;

    /// The session with which the link opens its backend.
    open_params to_open(const auth_list& auth) const;
    session_credentials credentials() const;
    /// For a user: from then on, the session is ended over no connection but the one that it has.
    session_credentials share_credentials();

    // ---------------------------------------------------------------------------------------- what the link tells
    void connected(time_point now);
    void publish_connected();  ///< when the lease is known
    void disconnected(time_point now);
    void expired();
    void refused(const auth_list& auth);
    /// Only a server can say that a session has expired. Without a connection (fact 26), the session is presumed
    /// expired after 4/3 of its timeout.
    void presume_expired(time_point now);
    time_point presumed_expiry() const noexcept;
    /// By then, servers must have ended a session that they have not heard of since now, or since its connection ended.
    time_point over_by(time_point now) const noexcept;
    /// Of a resumed session: how long to wait, and then to ask again, until the client that had it can hold nothing any
    /// more. Servers refuse its writes since the handshake of this connection, so its lease has ended a session timeout
    /// later. (Without a connection, that client may have taken the session back.)
    duration until_former_is_over(time_point now) const noexcept;

    // ------------------------------------------------------------------------------------------------- the end of one
    struct ending {
        std::error_code code;
        std::string reason;
    };
    /// The session is over, and its end was not handled yet.
    bool is_ending() const noexcept { return ending_.has_value(); }
    ending take_ending();
    /// How long work that begins again in each session is to wait, see session_pace. From any thread.
    std::chrono::milliseconds until_usable() const noexcept;
    /// Ends the current record, and makes another one current. Returns the ended record.
    session_record_ptr renew();
    /// The session that was given up without a server's word, for link::end_first(). Once.
    std::optional<session_credentials> take_former() { return std::exchange(former_, std::nullopt); }
    /// A server has confirmed the end of the session of take_former().
    void former_over() noexcept;

    /// @param now the state as the client reports it: closed in a child process.
    void subscribe(const event_subscription_ptr& s, session_state now) const {
        events_.subscribe(s, {now, record_->session_id, "the state when events() was called"});
    }
    void publish(session_state s, std::string reason, std::int64_t session_id);
    void publish(session_state s, std::string reason) { publish(s, std::move(reason), record_->session_id); }

    // ------------------------------------------------------------------------------------------------------- closing
    /// The result of close() when no server has confirmed the end of the session: a session that was asked for may
    /// exist, and so may a session that was to be resumed.
    close_result without_goodbye() const noexcept;
    /// Whether a session that was given up before may still exist on the servers.
    bool left_one_behind();

private:
    void pace_next() noexcept;
    void check_tick(client_options::duration granted) const;
    void forget_given_up(time_point now);

    const client_options& options_;
    link& link_;
    event_feed& events_;
    const logger& log_;
    telemetry& telemetry_;
    std::atomic<session_state> state_{session_state::connecting};
    mutable std::mutex record_mutex_;  // for readers on other threads
    session_record_ptr record_ = std::make_shared<session_record>();
    std::optional<session_credentials> resume_;
    std::optional<ending> ending_;
    time_point connected_since_{}, disconnected_since_{};
    time_point began_ = time_point::max();        // the current session
    int short_sessions_ = 0;                      // in a row
    std::atomic<boot_clock::rep> usable_at_{0};  // the next one
    std::optional<session_credentials> former_;  // given up, and not taken by take_former()
    duration given_up_{};  // the timeout of a session that has ended here, and perhaps not yet on the servers
    bool only_former_ = false;  // given_up_ is of the session of take_former(), and of no other
};

}  // namespace zkasio::detail
