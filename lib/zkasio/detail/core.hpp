#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/backend.hpp>
#include <zkasio/detail/fork_mark.hpp>
#include <zkasio/detail/name_resolver.hpp>
#include <zkasio/detail/session_record.hpp>
#include <zkasio/detail/shutdown_service.hpp>
#include <zkasio/detail/socket_watch.hpp>
#include <zkasio/detail/watch_registry.hpp>
#include <zkasio/session_event.hpp>

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/steady_timer.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <unordered_map>

namespace zkasio::detail {

/// A request on its way: what, for which session, and the watch that it sets, if any.
struct command {
    request what;
    session_record_ptr pinned;  ///< null: whichever session is current
    watch_ptr watch;
};

/// One reader of the session's events.
struct event_subscription {
    std::mutex mutex;
    std::deque<session_event> queue;                           // guarded by the mutex
    one_shot_ptr arrival = std::make_shared<one_shot_state>();  // strand
};

using backend_factory = std::function<std::unique_ptr<backend>(backend_listener&)>;

struct node_search;

/// Everything behind a client: one strand, one backend at a time, the operations that wait, the session's lease.
/// All members are for the strand only, except those that say otherwise.
///
/// The sources are split by concern: core.cpp (operations), core_link.cpp (connecting, driving the backend, the
/// timer), core_session.cpp (sessions, leases, holds, events, closing).
class core final : public std::enable_shared_from_this<core>, private backend_listener {
public:
    /// Throws zkasio::error for options that make no sense.
    core(asio::any_io_executor executor, client_options options, backend_factory factory);

    // ------------------------------------------------------------------------------------- from any thread
    const strand_type& strand() const noexcept { return strand_; }
    const client_options& options() const noexcept { return options_; }
    op_id next_id() noexcept { return next_id_.fetch_add(1, std::memory_order_relaxed); }
    session_state state() const noexcept { return forked() ? session_state::closed : state_.load(std::memory_order_acquire); }
    /// This process is a child of the one that has made the client, and to which its session belongs.
    bool forked() const noexcept { return made_here_.forked(); }
    session_record_ptr current_session_record() const;
    std::size_t chroot_length() const noexcept { return servers_.chroot.size(); }  // never changes
    std::string server_names() const;  ///< as they were given last
    double random();  ///< [0, 1)

    // ------------------------------------------------------------------------------------------ operations
    void start();
    void submit(op_id id, command c, std::unique_ptr<receiver> to);
    /// The reply is kept in `to`. `until_certain`: sent again whenever its outcome is unknown, for as long as
    /// the session lives; that a node is gone already counts as removed.
    void submit(command c, std::shared_ptr<kept_reply> to, bool until_certain);
    /// Takes a request back that was not sent yet: it ends with operation_aborted. False: it was sent, or has ended.
    bool withdraw(const std::shared_ptr<kept_reply>& asked);
    void wait(op_id id, const one_shot_ptr& on, std::unique_ptr<receiver> to);
    void fire(const one_shot_ptr& w, std::error_code code = {});
    /// What it throws is logged.
    void call(const std::function<void()>& callback) noexcept;
    void wait_connected(op_id id, std::unique_ptr<receiver> to);
    void wait_event(op_id id, const std::shared_ptr<event_subscription>& s, std::unique_ptr<receiver> to);
    void cancel(op_id id);
    void leave_watch(const watch_ptr& w);

    // --------------------------------------------------------------------------------------------- session
    void add_hold(const hold_ptr& h);
    /// @param lost the node that is gone, of `h` or of a part of it.
    void end_hold(const hold_ptr& h, loss_reason why, const hold::own_node* lost = nullptr);
    void watch_hold(const hold_ptr& h);
    void add_auth(auth_info who);
    bool has_auth(const auth_info& who) const;
    void subscribe(const std::shared_ptr<event_subscription>& s);
    void set_servers(server_list servers);
    void run_in_background(asio::awaitable<void> task);
    /// See find_nodes().
    using search_key = std::pair<session_record_ptr, std::string>;
    std::map<search_key, std::shared_ptr<node_search>>& searches() noexcept { return searches_; }
    session_credentials credentials() const;
    std::string last_failure() const { return last_failure_; }

    // ---------------------------------------------------------------------------------------------- closing
    void begin_close();
    bool is_closing() const noexcept { return closing_ != closing::no; }
    void wait_closed(op_id id, std::unique_ptr<receiver> to) { wait(id, closed_, std::move(to)); }
    close_result closed_how() const noexcept { return close_result_.load(); }  // any thread

    /// The context is being destroyed: nothing will ever complete.
    void let_go();

    /// In a child process: ends everything here with errc::forked, and leaves the session to the parent. Whether it is one.
    bool left_behind();

    // For tests: nothing is pending.
    std::size_t pending_operations() const noexcept { return operations_.size() + waits_.size() - own_reads_; }
    std::size_t watches() const noexcept { return watches_.size(); }

private:
    using clock = boot_clock;
    using duration = clock::duration;
    using time_point = clock::time_point;

    struct operation {
        std::unique_ptr<receiver> to;                  // an awaiting coroutine,
        std::shared_ptr<detail::kept_reply> kept_reply;        // or somebody who may ask later,
        std::function<void(reply&&)> internal;         // or ourselves
        std::optional<request> what;
        session_record_ptr pinned;
        watch_ptr watch;
        time_point queued{}, sent{};
        bool issued = false, until_certain = false, abandoned = false, urgent = false;
        bool unconfirmed = false;  // counted in unconfirmed_auths_
    };

    // core.cpp
    void enqueue(op_id id, operation op);
    enum class urgency { none, first };
    void request_internally(request what, std::function<void(reply&&)> then, urgency u = urgency::none);
    void finish(operation&& op, reply&& r);
    void fail(op_id id, std::error_code code);
    void end_wait(op_id id, std::error_code code);
    void flush();
    void schedule_flush();
    void post_flush(std::size_t seen, int passes);
    std::optional<op_id> next_to_send(time_point now);
    bool something_to_send() const noexcept { return !urgent_.empty() || !again_.empty() || !outbox_.empty(); }
    void put_back(op_id id, const operation& op);
    void send_again(op_id id, std::error_code why);
    void begin_waiting_for_connection(time_point now);
    void expire_queue(time_point now);
    void send_watch_removal(const std::string& path, watch_kind kind);
    void registration_done(const operation& op, const std::error_code& code);

    // backend_listener
    void on_reply(op_id id, reply&& r) noexcept override;
    void on_link(link_state s) noexcept override;
    void on_node_event(node_event e, std::string_view path) noexcept override;
    void on_log(std::string_view line) noexcept override;

    // core_link.cpp
    void resolve();
    bool over() const noexcept { return state() == session_state::expired || state() == session_state::auth_failed; }
    void resolved(std::vector<std::string> servers, std::string failure);
    void on_ready(bool readable, bool writable);
    void on_timer();
    void begin_turn(time_point now);
    void read_what_has_come();
    void drive();
    void attempt_failed(time_point now, bool was_up);
    std::string why_not_connected() const;
    void retire_backend();
    void rearm_timer(time_point now);
    duration connect_limit() const;
    time_point presumed_expiry() const { return disconnected_since_ + session_->lease.session_timeout() / 3 * 4; }

    // core_session.cpp
    void link_up();
    void link_down();
    void check_tick(client_options::duration granted);
    void end_session(std::error_code code, std::string reason);
    void publish(session_state s, std::string reason, std::int64_t session_id);
    void publish(session_state s, std::string reason) { publish(s, std::move(reason), session_->session_id); }
    void sweep_subscriptions();
    void lease_changed();
    void check_leases(time_point now);
    void heartbeat(time_point now);
    void read_when_idle(time_point now);
    time_point own_read_due() const;
    time_point heartbeat_due(time_point now) const;
    void watch_own_nodes(time_point now);
    void watch_own_node(const hold_ptr& h, hold::own_node& node);
    void end_locals(session_record& e, std::error_code why);
    void end_all_holds(loss_reason why);
    void confirm_holds();
    close_result without_goodbye() const;
    void forget_given_up();
    void continue_close();
    void finish_close(close_result how);
    void end_all(std::error_code code);
    void log(std::string_view line);

    fork_mark made_here_;
    strand_type strand_;
    client_options options_;
    backend_factory factory_;
    server_list servers_;
    std::atomic<op_id> next_id_{1};
    std::atomic<session_state> state_{session_state::connecting};
    std::atomic<close_result> close_result_{close_result::confirmed};

    struct wait_entry {
        std::unique_ptr<receiver> to;
        one_shot_ptr on;
    };
    std::unordered_map<op_id, operation> operations_;  // requests
    std::unordered_map<op_id, wait_entry> waits_;      // and those who wait for something to happen: there may be many
    // Not yet handed to the backend: what goes before everything else, what was sent before and is sent again, and the rest, oldest
    // first. Those that have ended meanwhile are skipped.
    std::deque<op_id> urgent_;
    std::set<op_id> again_;
    std::deque<op_id> outbox_;
    std::deque<op_id> expiring_;  // while there is no connection: those that do not wait for ever, oldest first
    time_point again_not_before_{};
    int again_refused_ = 0;  // one after another
    /// Requests under way. As many as a server takes before it stops reading (globalOutstandingLimit); more would only be lost
    /// together when the connection is.
    static constexpr std::size_t window = 1000;
    std::size_t issued_ = 0;
    std::size_t own_reads_ = 0;  // of read_when_idle(), among operations_
    bool flush_scheduled_ = false;
    bool flush_when_writable_ = false;
    watch_registry watches_;
    std::vector<auth_info> auth_;

    // the link
    std::unique_ptr<backend> backend_;
    std::shared_ptr<socket_watch> socket_;
    name_resolver resolver_;
    link_state link_ = link_state::disconnected;
    bool has_socket_ = false;
    std::uint64_t attempt_connection_ = 0;
    bool session_asked_for_ = false;  // by a handshake whose answer has not come
    time_point attempt_deadline_ = time_point::max();
    time_point attempt_began_{};
    time_point connect_not_before_{};
    time_point backend_deadline_ = time_point::max();
    time_point resolve_at_ = time_point::max();
    time_point connected_since_{}, disconnected_since_{};
    int failed_attempts_ = 0, unanswered_handshakes_ = 0;  // since the last connection
    std::size_t server_count_ = 1;
    std::vector<std::string> addresses_;
    std::string last_failure_;
    bool more_to_read_ = false;
    int unconfirmed_auths_ = 0;  // given to the backend by add_auth(), and not known to be accepted
    std::error_code session_over_;
    std::string session_over_reason_;

    asio::steady_timer timer_;
    time_point timer_at_ = time_point::max();
    time_point last_turn_{};
    time_point last_submit_{};

    // the session
    mutable std::mutex session_mutex_;  // for readers elsewhere: of session_ and of servers_.text
    session_record_ptr session_;
    std::optional<session_credentials> resume_;
    duration given_up_{};  // the timeout of a session that has ended here, and perhaps not yet on the servers
    std::map<search_key, std::shared_ptr<node_search>> searches_;
    std::vector<std::weak_ptr<event_subscription>> subscriptions_;
    std::size_t subscriptions_swept_ = 0;  // their number after the last look for those that are gone
    std::minstd_rand random_;
    std::mutex random_mutex_;

    // closing
    enum class closing { no, draining, goodbye, done };
    closing closing_ = closing::no;
    shutdown_service* shutdown_ = nullptr;
    time_point close_deadline_ = time_point::max();
    one_shot_ptr closed_ = std::make_shared<one_shot_state>();
    std::list<asio::cancellation_signal> background_;
};

}  // namespace zkasio::detail
