#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/connection/auth_list.hpp>
#include <zkasio/detail/connection/link.hpp>
#include <zkasio/detail/requests/background_work.hpp>
#include <zkasio/detail/requests/command.hpp>
#include <zkasio/detail/requests/ephemeral_budget.hpp>
#include <zkasio/detail/requests/node_feeds.hpp>
#include <zkasio/detail/requests/refused_removals.hpp>
#include <zkasio/detail/requests/send_queue.hpp>
#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/requests/watch_registry.hpp>
#include <zkasio/detail/telemetry/telemetry.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <system_error>
#include <unordered_map>
#include <variant>
#include <vector>

namespace zkasio::detail {

/// What a cancellation does to a write that was sent.
enum class sent_writes : std::uint8_t {
    are_left,  ///< its caller is told at once; the outcome is unknown
    go_on,     ///< its caller waits for the answer
};

/// The unanswered requests, both those that wait to be sent and those under way, and the watches that they set. Each
/// request completes exactly once. On the strand, except next_id().
class request_table {
public:
    using clock = boot_clock;
    using time_point = clock::time_point;

    class owner {
    public:
        /// Why requests of session `pinned` (null: of the current session) are refused; no error: they are accepted.
        virtual std::error_code refusal(const session_record* pinned) const = 0;
        /// Whether lost requests may be sent again in the current session.
        virtual bool session_lives() const = 0;
        virtual const session_record_ptr& current_session() const = 0;
        /// 0 for a session that never had a connection.
        virtual std::int64_t id_of(const session_record& s) const noexcept = 0;
        virtual bool is_closing() const = 0;
        /// There is something to send now, or to wait for; see flush() and due().
        virtual void request_waits() = 0;
        /// The backend has answered a request that was sent at that time.
        virtual void request_answered(const request& what, const reply& r, time_point sent, time_point now) = 0;
        /// Calls `f` in a turn of its own.
        virtual void later(std::function<void()> f) = 0;
        /// Requests with repeat::until_certain are pieces of this work.
        virtual background_work& work() = 0;

    protected:
        ~owner() = default;
    };

    request_table(owner& o, link& l, wait_table& waits, auth_list& auth, const client_options& options,
                  const logger& log, telemetry& t)
        : owner_(o), link_(l), waits_(waits), auth_(auth), options_(options), log_(log), telemetry_(t), feeds_(log),
          watches_(l.chroot().size()),
          ephemerals_(options.ephemeral_budget(), l.chroot().size(), options.resume() != nullptr) {}

    /// From any thread.
    op_id next_id() noexcept { return next_id_.fetch_add(1, std::memory_order_relaxed); }

    // ---------------------------------------------------------------------------------------------- asking for one
    void submit(op_id id, command&& c, request_receiver&& to);
    enum class repeat {
        never,
        until_certain,  ///< sent again whenever its outcome is unknown, while the session lives; "no such node" counts
                        ///< as removed
        until_gone,     ///< as until_certain; if an ACL refuses the removal of a node of this session, the receiver is
                        ///< told so, and the removal is asked for again later: see refused_removals
    };
    /// The reply is kept in `to`.
    void submit(command&& c, kept_reply_ptr to, repeat r);
    enum class urgency { none, first };
    /// For the library itself: `then` is called with the reply, on the strand.
    op_id submit(command&& c, std::function<void(reply&&)> then, urgency u = urgency::none);

    /// Sends a request at once, if no other request waits or is under way: then there is none to share a packet with,
    /// and no reason to wait for a turn of its own. The request has to be small, so that the socket is certain to take
    /// all of it. False: nothing was done; call submit(). News of the backend (the connection may have been lost) comes
    /// in a later turn, which the owner is asked for.
    bool submit_at_once(op_id id, command& c, request_receiver& to);

    /// Takes back an unsent request, which ends with operation_aborted. False: the request was sent, or has ended.
    bool withdraw(const kept_reply_ptr& asked);
    /// The receiver gets operation_aborted at once; a request that was sent stays until the backend has completed it.
    /// No effect on a write that was sent, with sent_writes::go_on.
    void cancel(op_id id, sent_writes writes = sent_writes::are_left);

    /// A removal was refused by an ACL (zk_errc::no_auth): see refused_removals.
    void ask_later(std::string path, refused_removals::attempt ask);

    // ----------------------------------------------------------------------------------------------------- sending
    /// Whether there is anything to hand to the backend.
    bool something_to_send() const noexcept { return !queue_.empty(); }
    /// How many requests wait in lane::normal. The number grows while a turn asks for more requests.
    std::size_t waiting() const noexcept { return queue_.waiting(); }
    /// Hands waiting requests to the backend, as many as may be under way. Only while connected.
    void flush();
    /// From now on, or no longer, flush() sends urgent requests only.
    void hold_back(bool on) noexcept { held_back_ = on; }
    /// The socket has become writable.
    void writable();
    time_point last_sent() const noexcept { return last_sent_; }
    /// Handed to the backend, and not answered.
    std::size_t under_way() const noexcept { return issued_; }

    // ----------------------------------------------------------------------------------------- the link, and the time
    void connected(time_point now);
    /// All watches are gone, and the library forgets them. Unsent requests wait for the next connection; their time
    /// limit counts from `now` on.
    void disconnected(time_point now);
    /// Ends requests that found no connection for too long. Asks for a flush when the pause after a refusal is over.
    void on_time(time_point now);
    time_point due(time_point now);

    // --------------------------------------------------------------------------------------------- from the backend
    void answered(op_id id, reply&& r);
    void node_event(node_event e, std::string_view path);
    /// Of a recursive watch of feeds.
    void added_watch_event(detail::node_event e, std::string_view path, std::int64_t zxid = 0);

    // ------------------------------------------------------------------------------------------------------ watches
    void leave_watch(const watch_ptr& w);
    std::size_t watches() const noexcept { return watches_.size(); }
    /// The server has forgotten all watches: their waiters complete with `code`.
    void end_watches(std::error_code code);

    // ------------------------------------------------------------------------------------------------- ephemeral nodes
    ephemeral_budget& ephemerals() noexcept { return ephemerals_; }
    /// Calls those that wait for room, in a turn of its own, if there may be some.
    void tell_room();
    /// To be called when the session has a connection again: asks for doubtful nodes (ephemeral_budget::questions()),
    /// and for the nodes that waiters watch (watch_registry::questions()).
    void ask_questions();

    // ------------------------------------------------------------------------------------- watches of a connection
    node_feeds& feeds() noexcept { return feeds_; }
    /// @param pinned null: of any session.
    void add_feed(const feed_ptr& f, const session_record* pinned = nullptr);
    void remove_feed(feed_state& f);
    /// Whether the feed is to be told of the connection when a server has answered.
    bool waits_for_one_watch(const feed_state& f) const;
    void read_for(const feed_ptr& to, node_read what, std::string path);
    void leave_feed_watch(node_read what, const std::string& path);
    /// There is a connection over which the feeds can read.
    void feeds_connected();
    /// The connection is gone, and with it the watches of the feeds.
    void feeds_disconnected();

    // ------------------------------------------------------------------------------------------------------ the end
    /// All requests; if another session follows, without those of no certain one that only wait for a connection.
    std::vector<op_id> of_this_session(bool another_follows) const;
    /// The requests `over` end with their session; the rest waits for the next session.
    void end(const std::vector<op_id>& over, std::error_code code);
    /// All unsent requests fail.
    void end_unsent(std::error_code code);
    void end_all(std::error_code code);
    /// Drops everything without completing it.
    void clear();

    std::size_t size() const noexcept { return entries_.size(); }

    /// The last connection has ended with a request at which the servers hang up, perhaps: the largest one without an
    /// answer. So many connections have ended with one of its kind, none of which was answered in between that was as
    /// large: a connection that breaks by chance has answered others. From the third on, such a request is sent while
    /// no other one is under way, so that it is known which one it is; from the fifth on, see reply::hung_up_at.
    int ended_with_same_request() const noexcept { return last_lost_.connections; }
    /// That request: "set /path, 8050 bytes".
    const std::string& request_of_end() const noexcept { return last_lost_.text; }
    /// A request that was lost has been applied, as whoever asked has found out: it counts as answered.
    /// @param path of the request, or of the sequential node that it has created.
    void was_applied(std::string_view path);

private:
    /// Where a request is. A request enters with submit() or submit_at_once(), and is gone with its outcome:
    ///
    ///     from                    by                  to
    ///     -                       submit()            queued
    ///     -                       submit_at_once()    under_way
    ///     queued, queued_again    send()              under_way
    ///     under_way               send_again()        queued_again
    ///     each of them            answered(), fail()  -
    ///     queued, queued_again    cancel()            -
    ///
    /// cancel() leaves a request that is under way where it is, and takes its receiver.
    enum class stage : std::uint8_t {
        queued,        ///< in queue_, and not sent before
        under_way,     ///< handed to the backend: counted in issued_ and issued_bytes_
        queued_again,  ///< in queue_, and sent before
    };
    using internal_receiver = std::function<void(reply&&)>;
    struct entry : command {
        /// None (the caller has left), an awaiting coroutine, a reply kept for a later caller, or the library itself.
        std::variant<std::monostate, request_receiver, kept_reply_ptr, internal_receiver> to;
        background_work::piece work;  // of a request that is until_certain
        time_point queued{}, sent{};
        std::size_t bytes = 0;  // once it was sent: counted in issued_bytes_
        stage at = stage::queued;
        ephemeral_budget::share ephemerals;
        bool until_certain = false, until_gone = false, urgent = false;
        bool unconfirmed = false;  // counted in auth_list::unconfirmed
        bool alone = false;        // under way, and nothing else is sent until it is answered
        bool is_late = false;      // in queue_, and to wait for send_queue::pause_late()
        bool is_without_stat = false;  // of a create: sent again, since a server does not know the first kind
        bool is_refused = false;       // by the latest answer for that reason: not applied, its room is still taken
    };
    /// A request at which a server has hung up, perhaps.
    struct fatal_request {
        std::size_t kind = 0, bytes = 0;
        std::size_t answered = 0;  // the largest one of its kind since
        int connections = 0;
        time_point since{}, last{};  // the ends of the first and the last of these connections
        std::string path, text;
        bool is_sequential = false;
        bool is_repeated = false;  // here, on the next connection: a removal, a read of a feed, a question
        bool pauses = false;       // is_repeated, or its caller does
    };
    using entries = std::unordered_map<op_id, entry>;
    /// The watch that the feeds of one root share on a connection: recursive as soon as one of them wants that.
    struct one_watch {
        enum class stage : std::uint8_t {
            asked,
            refused,
            stands,
            leaving,  ///< its removal waits to be sent
        };
        stage is = stage::asked;
        bool is_recursive = false;
        bool asks_recursive = false;    // is, or was asked to be
        int unanswered = 0;             // requests for it
        bool is_replaced = false;       // while it was asked for, by a read or a removal that was sent since
        int asked_again = 0;
        bool is_in_doubt = false;       // refused since others replace it all the time: the last one may stand (3.9)
        std::vector<feed_ptr> waiting;  // to be told of the connection
    };
    static send_queue::lane lane_of(const entry& e) noexcept;
    static bool is_abandoned(const entry& e) noexcept { return std::holds_alternative<std::monostate>(e.to); }
    /// Not by a server, for certain.
    static bool is_unsent(const entry& e) noexcept {
        return e.at == stage::queued || (e.at == stage::queued_again && e.is_refused);
    }
    bool may_expire(const entry& e) const noexcept;

    void check() const noexcept;
    entry& insert(op_id id, time_point now, command&& c);
    void enqueue(op_id id, entry& e);
    void issue(entry& e);
    void no_longer_issued(const entry& e) noexcept;
    const fatal_request* fatal_of(std::size_t kind) const noexcept;
    bool may_be_fatal(const entry& e) const noexcept;
    void look_for_fatal(const entry& e, reply& r);
    void suspect_refused(const entry& e);
    static bool is_hung_up_at(const fatal_request& f) noexcept;
    bool is_hung_up_at(const entry& e) const noexcept;
    void pause_fatal(time_point now);
    void end_pause_without_reason();
    void conclude_fatal();
    void begin_to_expire(time_point now);
    void drop(entries::node_type node) noexcept;
    bool take_room(entry& e);
    std::string bytes_of_ephemerals() const;
    void leave_room(entry& e, const reply& r, bool again = false);
    void search_for_room(time_point now);
    void ask_more();
    void drop_questions_of_budget();
    bool is_needed(op_id id, const entry& e);
    bool is_alone(const command& c) const;
    bool send(op_id id, entry& e);
    void finish(entry&& e, reply&& r, time_point now);
    void report(const entry& e, const reply& r, time_point now) noexcept;
    void finish_if_connected(entry&& e, reply&& r);
    void fail(op_id id, std::error_code code);
    bool repeats(const entry& e, const reply& r) const;
    static bool has_stand_in(const entry& e, const reply& r) noexcept;
    void send_again(entries::node_type node);
    void conclude_removal(const entry& e, reply& r);
    void ask_refused(time_point now);
    void conclude_auth(const entry& e, const reply& r);
    static watch_target own_watch_of(const entry& e);
    void registration_done(const entry& e, const reply& r);
    bool confirm_watch_removal(const std::string& path, watch_kind kind);
    void send_watch_removal(const std::string& path, watch_kind kind);
    void drop_queued_removals();
    void forget_watch(const std::string& path, watch_kind kind);
    void hear(detail::node_event e, std::string_view path);
    void tell_feeds();
    void tell(const feed_ptr& f);
    void submit_for(const feed_ptr& to, command&& c, std::function<void(reply&&)> then);
    void read_alone(const feed_ptr& to, node_read what, std::string path);
    void send_batches(const feed_ptr& to);
    void send_batch(const feed_ptr& to, std::vector<feed_state::read> reads);
    void batch_answered(const feed_ptr& to, const std::vector<feed_state::read>& reads, reply&& r);
    void ask_for_one_watch(const std::string& root);
    void conclude_one_watches();
    void forget_watches_at(const std::string& root);
    void one_watch_answered(const std::string& root, bool recursive, std::error_code code);
    bool has_one_watch(std::string_view path) const;
    bool needs_one_watch(const std::string& root) const;
    void leave_one_watch(const std::string& root);
    bool confirm_leaving(const std::string& root);
    bool takes_watch_along(const request& r);
    bool is_needed_beside_one_watch(const request& r);
    void set_children_watch_again(const std::string& root);
    void refuse_read_only(op_id id);

    owner& owner_;
    link& link_;
    wait_table& waits_;
    auth_list& auth_;
    const client_options& options_;
    const logger& log_;
    telemetry& telemetry_;
    std::atomic<op_id> next_id_{1};
    entries entries_;
    /// Nodes of ended entries, to be reused: in a steady state, requests allocate no memory here.
    static constexpr std::size_t most_spare = 64;
    std::vector<entries::node_type> spare_;
    send_queue queue_;
    std::deque<op_id> expiring_;  // while there is no connection: the requests with a time limit, oldest first
    /// As many requests as a server takes before it stops reading (globalOutstandingLimit). More requests under way
    /// would only be lost together with the connection.
    static constexpr std::size_t window = 1000;
    /// The C library keeps a copy of each request that the socket has not taken.
    static constexpr std::size_t window_bytes = 8 * 1024 * 1024;
    std::size_t issued_ = 0, issued_bytes_ = 0;
    int refused_ = 0;  // consecutive answers after which requests are sent again
    bool flush_when_writable_ = false;
    bool answered_on_this_connection_ = false;
    std::vector<fatal_request> fatal_;  // one for each kind
    fatal_request largest_lost_;        // on this connection
    fatal_request last_lost_;           // on the last one
    bool one_is_alone_ = false;           // see entry::alone
    bool held_back_ = false;
    bool unsettled_ = false;  // the backend may have news after submit_at_once()
    time_point last_sent_{};
    node_feeds feeds_;
    std::map<op_id, feed_ptr> late_reads_;  // those reads of feeds that are_late, which nobody may want by then
    std::map<std::string, one_watch, std::less<>> one_watches_;  // by the root
    int one_watch_lost_ = 0;            // connections in a row that have ended before it was answered
    time_point no_one_watch_before_{};  // it is not asked for
    bool told_no_one_watch_ = false;
    std::int64_t synced_session_ = 0;  // the session whose servers show all that the feeds know
    bool ahead_of_answers_ = false;    // the feeds know of an event that is newer than the last answer
    watch_registry watches_;
    ephemeral_budget ephemerals_;
    refused_removals refused_removals_;
    // What is asked on a new connection, for `watches_` and `ephemerals_`, few at a time.
    std::list<request> questions_;
    std::size_t questions_asked_ = 0;  // on this connection, and not answered yet
    time_point no_questions_before_{};
    time_point no_search_before_{};
    bool room_is_told_ = false;  // tell_room() has asked for a turn
};

}  // namespace zkasio::detail
