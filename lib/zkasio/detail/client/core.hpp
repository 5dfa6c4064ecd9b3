#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/base/fork_mark.hpp>
#include <zkasio/detail/base/shutdown_service.hpp>
#include <zkasio/detail/base/view_root.hpp>
#include <zkasio/detail/client/background_tasks.hpp>
#include <zkasio/detail/connection/link.hpp>
#include <zkasio/detail/requests/background_work.hpp>
#include <zkasio/detail/requests/request_table.hpp>
#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/session/event_feed.hpp>
#include <zkasio/detail/session/hold_keeper.hpp>
#include <zkasio/detail/session/session_keeper.hpp>
#include <zkasio/detail/telemetry/logger.hpp>
#include <zkasio/detail/telemetry/telemetry.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace zkasio::detail {

struct node_search;

/// Everything behind a client: one strand, and on it a link to the ensemble, the requests, the session with its holds,
/// and the waiting operations. This class runs the turns of these parts, has the one timer, and ends them in order.
///
/// All members are for the strand only, except those that say otherwise. core.cpp: turns; core_end.cpp: ends.
class core final : public std::enable_shared_from_this<core>,
                   private link::owner,
                   private request_table::owner,
                   private hold_keeper::owner {
public:
    /// Throws zkasio::error for options that make no sense.
    core(asio::any_io_executor executor, client_options options, backend_factory factory);
    /// Ends the backend while all parts still exist: the backend may call its listener when it ends.
    ~core() { link_.retire(); }

    // ------------------------------------------------------------------------------------- from any thread
    const strand_type& strand() const noexcept { return strand_; }
    const client_options& options() const noexcept { return options_; }
    op_id next_id() noexcept { return requests_.next_id(); }
    session_state state() const noexcept { return forked() ? session_state::closed : sessions_.state(); }
    /// Whether this process is a child of the process that has made the client, and to which the session belongs.
    bool forked() const noexcept { return made_here_.forked(); }
    session_record_ptr current_session_record() const { return sessions_.shared(); }
    std::size_t chroot_length() const noexcept { return link_.chroot().size(); }
    std::string server_names() const { return link_.server_names(); }  ///< as they were given last
    client_stats stats() const { return telemetry_.counters.get(); }
    bool observed() const noexcept { return telemetry_.observed(); }
    /// The root of a view, one object for all views of this root; stays as long as the core, which a handle keeps.
    view_root keep_root(std::string path);
    close_result closed_how() const noexcept { return close_result_.load(); }

    // ------------------------------------------------------------------------------------- what it consists of
    request_table& requests() noexcept { return requests_; }
    wait_table& waits() noexcept { return waits_; }
    event_feed& events() noexcept { return events_; }
    hold_keeper& holds() noexcept { return holds_; }
    session_keeper& sessions() noexcept { return sessions_; }
    detail::telemetry& telemetry() noexcept { return telemetry_; }
    const logger& log() const noexcept { return log_; }

    // ----------------------------------------------------------------------------------------------- asking
    void start();
    /// Puts the client's ACL in the place of default_acl(), before a node is created. From any thread.
    void complete(zkasio::acl& entries);
    /// Warns if these entries grant to this client's TLS certificate although it has credentials. From any thread.
    void warn_of_certificate(const zkasio::acl& entries);
    /// For a coroutine that awaits one request. In a turn of its own.
    void ask(op_id id, command& c, request_receiver&& to);
    /// Ends the request or the wait with this id, with operation_aborted.
    void cancel(op_id id, sent_writes writes = sent_writes::are_left);
    void add_hold(const hold_ptr& h);
    std::error_code set_servers(server_list servers);  ///< errc::client_closed, errc::forked
    /// See client_options::create_chroot(): no other request of the current session is sent until this is called.
    /// Without effect for another session.
    void chroot_is_known(const session_record& of);
    /// Asks whether the chroot exists, before all other requests. @param as_of_now it may have been created just now,
    /// through another server.
    void look_at_chroot(const session_record_ptr& of, const kept_reply_ptr& answer, bool as_of_now);
    bool creates_chroot() const noexcept;
    /// Makes the backends.
    const backend_factory& backends() const noexcept { return link_.factory(); }
    void run_in_background(asio::awaitable<void> task);
    /// As run_in_background(), for a task that is not meant to end: client::idle() does not wait for it. Closing
    /// cancels the task, and waits for its end. False: no task begins any more.
    bool run_until_closed(asio::awaitable<void> task);
    /// See client::idle().
    void wait_idle(op_id id, receiver to) { waits_.wait(id, work_.over(), std::move(to)); }
    /// One step of session::lease_extended(): to be repeated until the lease ends later than `beyond`.
    void wait_extended(op_id id, session_record& s, boot_clock::time_point beyond, receiver to);
    /// Work in the background that ends with the returned object, on any thread.
    std::shared_ptr<const void> begin_work();
    /// See find_nodes().
    using search_key = std::pair<session_record_ptr, std::string>;
    std::map<search_key, std::shared_ptr<node_search>>& searches() noexcept { return searches_; }

    // ----------------------------------------------------------------------------------------------- closing
    void begin_close();
    /// As begin_close(), but the session stays: see client::hand_over(). False: not now, or the client is closed.
    bool begin_hand_over();
    /// The session that begin_hand_over() has left. From any thread.
    std::optional<session_credentials> session_left() const;
    bool is_closing() const override { return closing_ != closing::no; }
    void wait_closed(op_id id, receiver to) { waits_.wait(id, closed_, std::move(to)); }

    /// The context is being destroyed: nothing will ever complete.
    void let_go();

    /// In a child process: ends everything here with errc::forked, leaves the session to the parent, and returns true.
    bool left_behind();

    // For tests: nothing is pending.
    std::size_t pending_operations() const noexcept { return requests_.size() + waits_.size() - holds_.own_reads(); }
    std::size_t watches() const noexcept { return requests_.watches(); }

private:
    using clock = boot_clock;
    using time_point = clock::time_point;
    enum class closing {
        no,
        draining,   ///< waits for answers and tasks
        goodbye,    ///< the end of the session was asked for
        returning,  ///< the connection was lost before that: another one is to end the session
        done,
    };

    // link::owner
    std::shared_ptr<void> keep_alive() override { return shared_from_this(); }
    bool wants_connection() override;
    open_params to_open() const override;
    void on_ready(bool readable, bool writable) override;
    void drive() override;
    bool may_move(time_point now) const;
    void move_if_nearer(time_point now);
    void former_session_over() noexcept override;
    void on_reply(op_id id, reply&& r) noexcept override;
    void on_link(link_state s) noexcept override;
    void on_node_event(node_event e, std::string_view path) noexcept override { requests_.node_event(e, path); }
    void on_added_watch(node_event e, std::string_view path, std::int64_t zxid) noexcept override {
        requests_.added_watch_event(e, path, zxid);
    }
    void on_log(std::string_view line) noexcept override { log_library(line); }

    // request_table::owner, hold_keeper::owner
    std::error_code refusal(const session_record* pinned) const override;
    bool session_lives() const override;
    const session_record_ptr& current_session() const override { return sessions_.current(); }
    std::int64_t id_of(const session_record& s) const noexcept override { return s.session_id.load(); }
    void request_waits() override;
    void request_answered(const request& what, const reply& r, time_point sent, time_point now) override;
    void later(std::function<void()> f) override;
    background_work& work() override { return work_; }
    void timer_changed() override { rearm_timer(clock::now()); }

    void tell_what_servers_lack() const noexcept;
    void log_library(std::string_view line) const noexcept;
    void link_up();
    void link_down();
    void warn_of_useless_connections();
    void begin_turn(time_point now);
    void schedule_flush();
    void post_flush(std::size_t seen, int passes);
    void flush_turn();
    void on_timer();
    void rearm_timer(time_point now);
    time_point due(time_point now);
    time_point close_due(time_point now) const noexcept;

    void begin_task(asio::awaitable<void> task, std::shared_ptr<background_work::piece> work);
    void warn_once(std::atomic<bool>& warned, const char* text);

    // core_end.cpp
    void end_session();
    void fire_end(session_record& of, std::error_code why);
    void end_locals(session_record& of, std::error_code why);
    bool close_waits() const noexcept;
    bool may_return() const noexcept;
    bool close_goes_on() const noexcept;
    void return_to_close();
    void continue_close();
    void finish_close(close_result how);
    bool close_is_drained() const noexcept { return requests_.under_way() <= holds_.own_reads(); }

    fork_mark made_here_;
    strand_type strand_;
    client_options options_;
    logger log_;
    detail::telemetry telemetry_;
    wait_table waits_;
    background_work work_;
    event_feed events_;
    auth_list auth_;
    link link_;
    session_keeper sessions_;
    request_table requests_;
    hold_keeper holds_;
    background_tasks background_;
    std::map<search_key, std::shared_ptr<node_search>> searches_;
    std::mutex roots_mutex_;
    std::set<std::string> roots_;  // guarded by roots_mutex_; its elements never move

    asio::steady_timer timer_;
    time_point timer_at_ = time_point::max();
    time_point last_turn_{};
    bool flush_scheduled_ = false;
    bool awaits_chroot_ = false;
    bool warned_of_useless_connections_ = false, warned_of_same_request_ = false;

    closing closing_ = closing::no;
    bool hands_over_ = false, own_session_ended_ = false;
    mutable std::mutex left_mutex_;
    std::optional<session_credentials> left_;  // guarded by left_mutex_
    std::atomic<close_result> close_result_{close_result::confirmed};
    std::atomic<bool> warned_of_open_nodes_{false}, warned_of_certificate_{false};
    time_point move_by_ = time_point::max();  // requests wait so long, see move_if_nearer()
    time_point close_deadline_ = time_point::max();
    one_shot_ptr closed_ = std::make_shared<one_shot_state>();
    shutdown_service* shutdown_ = nullptr;
    const std::shared_ptr<known_requests> known_ = std::make_shared<known_requests>();
};

using core_ptr = std::shared_ptr<core>;

}  // namespace zkasio::detail
