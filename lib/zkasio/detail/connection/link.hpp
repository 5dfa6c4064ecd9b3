#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/connection/auth_list.hpp>
#include <zkasio/detail/connection/connection_pacing.hpp>
#include <zkasio/detail/connection/name_resolver.hpp>
#include <zkasio/detail/connection/nearer_server.hpp>
#include <zkasio/detail/connection/sasl_steps.hpp>
#include <zkasio/detail/connection/server_list.hpp>
#include <zkasio/detail/connection/socket_watch.hpp>
#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/detail/telemetry/logger.hpp>

#include <cassert>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::detail {

using backend_factory = std::function<std::unique_ptr<backend>(backend_listener&)>;

/// The connection to the ensemble: looks up the servers' names, opens the backend, drives it with the reactor, and
/// tries again, at a pace, when a connection fails. Knows nothing of sessions and requests except the parameters of
/// backend::open(). On the strand, except where stated otherwise.
///
/// A turn (of the owner) calls process() or read_if_late(), and at its end pump(), which asks the backend for its next
/// events.
class link {
public:
    using clock = boot_clock;
    using duration = clock::duration;
    using time_point = clock::time_point;

    class owner : public backend_listener {
    public:
        /// Held by each operation that is under way.
        virtual std::shared_ptr<void> keep_alive() = 0;
        /// Whether a backend that is not open yet is to be opened, now that its servers are known.
        virtual bool wants_connection() = 0;
        /// The session and the credentials; the link adds the servers.
        virtual open_params to_open() const = 0;
        /// The socket is ready: a turn begins.
        virtual void on_ready(bool readable, bool writable) = 0;
        /// The backend was opened, or has news: a turn ends.
        virtual void drive() = 0;
        /// A server has confirmed that the session of end_first() is over.
        virtual void former_session_over() noexcept = 0;

    protected:
        ~owner() = default;
    };

    /// Throws zkasio::error for servers that make no sense.
    link(owner& o, const strand_type& strand, const client_options& options, backend_factory factory,
         const logger& log);

    // ------------------------------------------------------------------------------------------------- servers
    void start(reactor_mark reactor);
    /// Looks the servers up and opens the backend, or tells an open one of their addresses.
    void resolve();
    void stop_resolving();
    void set_servers(server_list servers);
    const backend_factory& factory() const noexcept { return factory_; }
    const std::string& chroot() const noexcept { return servers_.chroot; }  ///< never changes; from any thread
    std::string server_names() const;  ///< as they were given last, with the chroot; from any thread

    // -------------------------------------------------------------------------------------------------- state
    link_state state() const noexcept { return state_; }
    bool connected() const noexcept { return state_ == link_state::connected; }
    bool is_open() const noexcept { return backend_ != nullptr; }
    /// Only while it is open.
    detail::backend& backend() const noexcept {
        assert(backend_);
        return *backend_;
    }
    /// A handshake was sent whose answer has not come: the session may exist.
    bool session_asked_for() const noexcept { return session_asked_for_; }
    /// An answered handshake was sent at this time, or later.
    time_point attempt_began() const noexcept { return attempt_began_; }
    const std::string& last_failure() const noexcept { return last_failure_; }
    std::string why_not_connected() const;
    /// Of servers that have all refused the login: the last one's reason.
    const std::string& why_login_refused() const noexcept { return refused_login_; }

    // ------------------------------------------------------------------------------------------- told by the owner
    /// Takes the state that the backend has reported, before any other part reacts to it.
    void changed(link_state s);
    /// A server has answered a request: the connection is of use.
    void answered() noexcept {
        if (!std::exchange(of_use_, true)) pacing_.reset();
    }
    /// How many connections in a row have ended before a request was answered.
    int useless_connections() const noexcept { return pacing_.useless(); }

    // -------------------------------------------------------------------------------------------------- turns
    /// May call a user's function: to be called before a turn.
    void secure();
    void process(bool readable, bool writable);
    /// Data that has arrived counts, even if it is read late (fact 7): called before the backend checks its timeouts.
    void read_what_has_come();
    bool is_late(time_point now) const noexcept { return now >= backend_deadline_; }
    void read_if_late(time_point now) {
        if (is_late(now)) read_what_has_come();
    }
    /// Looks the servers up again, if that is due.
    void on_time(time_point now);
    /// Ends an attempt that has taken too long.
    void give_up_attempt(time_point now);
    /// Asks the backend for its next events, and waits for them.
    void pump(time_point now);
    /// When one of these functions has to be called next.
    time_point due() const noexcept;
    /// A goodbye was sent: from now on only its answer is awaited, see backend::answer_to_goodbye().
    void await_goodbye() { backend_deadline_ = time_point::max(); }
    void rearm_goodbye();

    /// A server that is nearer than the connected one has been up for a while, and was a moment ago: see
    /// client_options::prefer(). Then one of the others is to be called.
    bool nearer_is_up(time_point now) const noexcept { return nearer_up_ && now < nearer_until_; }
    void move_to_nearer();
    void look_for_nearer();

    /// The event loop is being destroyed.
    void let_go() noexcept {
        if (sasl_) sasl_->stop();
    }
    /// Closes the backend, and with it the connection. The next resolve() opens another one.
    void retire();

    // ---------------------------------------------------------------------------------- the end of a former session
    /// Before another session is opened, the next connection resumes this session and ends it, so that the servers
    /// remove its ephemeral nodes at once and not only when the session times out. Until then the link is not
    /// connected.
    void end_first(session_credentials former);
    /// The same for the session of the backend, which is closed, and of which nothing else is wanted any more. It is
    /// over, or cannot be ended, when has_former() does not hold any more.
    void end_over_next_connection(session_credentials s);
    /// Takes the state that the backend has reported, if the backend is the former session's. False: it is not.
    bool takes_for_former(link_state s) noexcept;
    bool has_former() const noexcept { return former_.has_value(); }
    /// Of the former session's goodbye, if it was sent.
    void read_answer_to_goodbye();
    bool is_of_former() const noexcept { return former_at_ != former_stage::none; }

private:
    /// What happens to the session of end_first(). Each stage but the last one ends with the next.
    enum class former_stage {
        none,      ///< no backend is open for the former session
        resuming,  ///< the backend tries to resume it
        resumed,   ///< a server has resumed it; the goodbye is to be sent
        goodbye,   ///< its answer is awaited, see backend::answer_to_goodbye()
        gone,      ///< over, or given up for good: the backend is to be closed
    };

    void resolved(std::vector<server_address> servers, const std::string& failure);
    int rank_of(const server_address& s) const;
    void forget_nearer() noexcept;
    bool open(std::vector<server_address> servers);
    void attempt_failed(time_point now, bool was_up);
    void note_failure(time_point now);
    duration pause_after_failure(time_point now) noexcept;
    void connection_over();
    bool pump_former(time_point now);
    bool is_final() const noexcept { return state_ == link_state::expired || state_ == link_state::auth_failed; }

    owner& owner_;
    strand_type strand_;
    const client_options& options_;
    backend_factory factory_;
    const logger& log_;
    mutable std::mutex names_mutex_;  // for readers of servers_.text on other threads
    server_list servers_;
    std::vector<std::string> endpoints_;  // of the servers, with names and ranks, sorted
    name_resolver resolver_;
    std::uint64_t lists_ = 0;  // of servers that were to be ranked: only the newest counts
    std::vector<server_address> ranked_;
    nearer_server nearer_;
    std::optional<server_address> nearer_up_;
    time_point nearer_until_ = time_point::max();
    int left_rank_ = 0;  // of the server that was left last for a nearer one
    std::shared_ptr<socket_watch> socket_;
    std::shared_ptr<sasl_steps> sasl_;  // null: without SASL
    std::unique_ptr<detail::backend> backend_;
    link_state state_ = link_state::disconnected;
    connection_pacing pacing_;
    bool of_use_ = false;  // the connection; only if it is not, its end adds to the next pause
    std::size_t failed_attempts_ = 0;
    std::string failures_of_round_;  // reasons, each once
    std::string warned_of_;          // since the last connection
    time_point warned_at_{};
    std::string last_failure_, refused_login_;
    int unwatched_ = 0;  // the error number, when the socket cannot be waited for
    bool session_asked_for_ = false;
    bool more_to_read_ = false;

    // The attempt that is under way.
    bool has_socket_ = false;
    std::uint64_t attempt_connection_ = 0;
    time_point attempt_began_{}, connected_at_{};
    time_point attempt_deadline_ = time_point::max();

    std::optional<session_credentials> former_;  // of end_first()
    former_stage former_at_ = former_stage::none;
    time_point former_deadline_ = time_point::max();  // of its goodbye

    time_point session_ends_{};  // for all that is known here, while there is no connection
    time_point connect_not_before_{};
    time_point backend_deadline_ = time_point::max();
    time_point resolve_at_ = time_point::max();
};

}  // namespace zkasio::detail
