#pragma once

#include <zkasio/detail/base/fork_mark.hpp>
#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/detail/connection/c_conversions.hpp>
#include <zkasio/detail/connection/own_frames.hpp>
#include <zkasio/detail/connection/tunnel.hpp>
#include <zkasio/detail/seam/backend.hpp>

#include <zookeeper/zookeeper.h>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// The C library behind the seam. Only this room sees <zookeeper/zookeeper.h>, and these files deal with the
// peculiarities of that library; "fact N" refers to the list in docs/c-client.md. c_backend_callbacks.cpp: the
// library's callbacks; c_backend_requests.cpp: requests to it; c_backend_connection.cpp: its connection, from the
// handshake to the end; c_backend_own.cpp: frames of our own between the library's; c_backend_servers.cpp: the servers
// that it may use; c_backend_limits.cpp: requests that not all servers know; c_backend.cpp: the rest.
namespace zkasio::detail {

class c_backend;

/// One at a time in the process, see c_conversions.hpp. `current` tells a callback, which carries no context but the
/// operation's id, to which backend it belongs.
///
/// The listener is never called while a library_call exists: the listener may call the library again, for this handle
/// or for another one, or take its time.
class library_call {
public:
    explicit library_call(c_backend& b) : lock_(zkasio_the_c_library_1()->mutex), outer_(current) { current = &b; }
    ~library_call() { current = outer_; }
    library_call(const library_call&) = delete;
    library_call& operator=(const library_call&) = delete;

    static inline thread_local c_backend* current = nullptr;

private:
    std::lock_guard<std::mutex> lock_;
    c_backend* outer_;
};

/// A descriptor that reads as end of file and refuses writes.
class dead_descriptor {
public:
    dead_descriptor();
    ~dead_descriptor();
    dead_descriptor(const dead_descriptor&) = delete;
    dead_descriptor& operator=(const dead_descriptor&) = delete;

    /// Replaces what is behind the descriptor number `victim` with the dead descriptor; the number stays.
    void replace(int victim) const;

private:
    int fd_ = -1;
};

/// Returns "[::1]:2181" for "::1:2181", "[::1:2181]" and "[::1]:2181": the library's builds differ. An IPv4 address
/// stays without brackets.
std::string with_brackets(std::string_view server);

/// The buffers of a multi: the library keeps the addresses of its operations' buffers until the answer comes.
struct multi_call {
    std::vector<zoo_op_t> ops;
    std::vector<zoo_op_result_t> results;
    std::vector<std::string> created_paths;
    std::vector<::Stat> stats;
    std::vector<c_acl> acls;
};

class c_backend final : public backend {
public:
    explicit c_backend(backend_listener& listener);
    ~c_backend() override { close(); }

    void open(const open_params& p) override;
    bool has_socket() const override {
        return usable() && zoo_state(zh_) != 0 && zoo_state(zh_) != ZOO_NOTCONNECTED_STATE;
    }
    bool handshake_sent() const override { return zh_ && zoo_state(zh_) == ZOO_ASSOCIATING_STATE; }
    bool accepted() const override {
        return handshake_sent() || (tunnel_ && tunnel_->at() == tunnel::stage::handshake);
    }
    interest next_interest() override;
    bool is_to_be_secured() const override { return usable() && tunnel_ && tunnel_->is_to_be_secured(); }
    void secure(channel_maker make) override {
        if (tunnel_) tunnel_->secure(std::move(make));
    }
    bool login_failed() const override { return login_failed_; }
    bool login_refused() const override { return login_refused_; }
    drain_result process(bool readable, bool writable) override;
    std::error_code submit(op_id id, const request& r) override;
    bool is_settled() const override { return (news_.empty() || is_held_back(0)) && connected() && unsent_.empty(); }
    void begin_batch() override;
    void end_batch() override;
    void abort_connection() override;
    void move_to(const server_address& to) override;
    void begin_round() override;
    int current_rank() const override;
    void set_servers(const std::vector<server_address>& servers) override;
    void forget_watch(const std::string& path, watch_kind kind) override;
    std::int64_t session_id() const override { return zh_ ? zoo_client_id(zh_)->client_id : 0; }
    std::string session_password() const override {
        return zh_ ? std::string(zoo_client_id(zh_)->passwd, sizeof(clientid_t::passwd)) : std::string();
    }
    std::chrono::milliseconds session_timeout() const override {
        return std::chrono::milliseconds(zh_ ? zoo_recv_timeout(zh_) : 0);
    }
    std::string last_failure() const override { return last_failure_; }
    std::string attempt() const override;
    std::string current_server() const override;
    bool send_goodbye() override;
    goodbye_result answer_to_goodbye() override;
    bool is_zookeeper() const override { return known_->is_zookeeper(server_); }
    interest goodbye_interest() const override { return network_interest(); }
    void close() override;

private:
    /// The library's callbacks. The library calls them only from within a library_call. They must not throw through C
    /// frames, and they only keep the result (fact 14): see tell_news().
    struct sink {
        template <class Decode>
        static void complete(int rc, const void* data, Decode decode) noexcept;
        static void on_void(int rc, const void* data) noexcept;
        static void on_auth(int rc, const ::Stat*, const void* data) noexcept;
        static void on_stat(int rc, const ::Stat* s, const void* data) noexcept;
        static void on_data(int rc, const char* value, int length, const ::Stat* s, const void* data) noexcept;
        static void on_strings(int rc, const String_vector* names, const ::Stat* s, const void* data) noexcept;
        static void on_string(int rc, const char* value, const void* data) noexcept;
        static void on_string_stat(int rc, const char* value, const ::Stat* s, const void* data) noexcept;
        static void on_created(int rc, const char* value, const void* data) noexcept;
        static void on_created_stat(int rc, const ::Stat* s, const void* data) noexcept;
        static void on_acl(int rc, ACL_vector* v, ::Stat* s, const void* data) noexcept;
        static void on_multi(int rc, const void* data) noexcept;
        static void on_mark(int rc, const ::Stat*, const void*) noexcept;
        static void on_watch(zhandle_t*, int type, int, const char* path, void* context) noexcept;
        static void on_log(const char* message) noexcept;
    };

    std::error_code send(op_id id, const create_request& r);
    std::error_code send_without_stat(op_id id, const create_request& r);
    std::error_code send(op_id id, const remove_request& r);
    std::error_code send(op_id id, const set_request& r);
    std::error_code send(op_id id, const exists_request& r);
    std::error_code send(op_id id, const get_request& r);
    std::error_code send(op_id id, const children_request& r);
    std::error_code send(op_id id, const sync_request& r);
    std::error_code send(op_id id, const get_acl_request& r);
    std::error_code send(op_id id, const set_acl_request& r);
    std::error_code send(op_id id, const get_config_request& r);
    std::error_code send(op_id id, const reconfig_request& r);
    std::error_code send(op_id id, const add_auth_request& r);
    std::error_code send(op_id id, const multi_request& r);
    std::error_code send(op_id id, const remove_watch_request& r);

    void take_next_server();
    int library_interest(int& fd, int& events, timeval& tv);
    int library_process(int events);
    // There is a handle, its session is not over, and the handle is not a forked child's copy of its parent's handle.
    bool usable() const { return zh_ && !made_here_.forked() && !is_over(); }
    bool is_over() const { return refused_ || is_unrecoverable(zh_); }
    bool connected() const { return zh_ && zoo_state(zh_) == ZOO_CONNECTED_STATE; }
    void adopt_descriptor(int fd);
    void watch_for_refusal();
    bool ends_with_refusal();
    bool dig_tunnel();
    int least_handshake() const noexcept;
    bool tunnel_is_open();
    void look_at_login();
    void wake_for_tunnel(interest& next) const;
    void send_through_tunnel();
    interest network_interest() const;
    enum class handshake { incomplete, good, bad, tls, failed, has_quorum, opens_no_sessions, has_no_leader };
    handshake look_at_handshake();
    handshake wait_for_last_byte();
    handshake hung_up_in_between() const;
    static std::string_view reason_of(handshake failed) noexcept;
    void accept_read_only();
    void leave_server_with_quorum();
    int read_failure_ = 0;  // errno of the read, for handshake::failed
    drain_result read_packets();
    void cure_poison();
    bool explain(std::string_view log_text);
    void abandon();
    void fail_connection();
    link_state link() const;

    /// What the next frame from the server is.
    enum class arrival {
        nothing,   ///< it has not come, or not all of it that is needed
        librarys,  ///< the library is to read it
        ours,      ///< an answer to us, which is in news_
        wrong,     ///< the connection was ended
    };
    std::error_code submit_own(op_id id, const request& r);
    bool finish_own_frame();
    interest wait_for_own_frame();
    bool looks_at_frames() const noexcept { return !own_.empty() || !added_watches_.empty(); }
    bool expects_answer() const noexcept { return outstanding_ > 0 || !own_.empty(); }
    arrival look_at_next_frame();
    arrival look_at_refusal(std::int32_t number, std::int32_t code);
    arrival look_at_event(std::span<const char> seen, std::size_t length);
    arrival read_own_frame();
    arrival take_own_answer();
    arrival wait_for_bytes(std::size_t bytes);
    arrival wrong_frame(const std::string& why);
    void low_water(std::size_t bytes);
    void count_answers(std::size_t librarys) noexcept;
    void lose_own();

    bool lacks(std::int32_t number) const;
    void learn_from(op_id id, int rc, reply& r);
    void leave_server_that_lacks();
    void conclude_requests();
    bool is_held_back(std::size_t news_at) const noexcept;
    void ask_for_stats();

    void tell_news();
    void report();
    const server_address* server_at(const std::string& endpoint) const;
    std::string named(const std::string& endpoint) const;
    void fail(std::string why) { last_failure_ = std::move(why); }
    void cork(bool on);

    // The results of the callbacks: for the listener, once the library has been left.
    struct reply_news {
        explicit reply_news(op_id i) : id(i) {}
        op_id id;
        reply what;
        /// Of a create without a stat, which is read: until it is there, no later news is told. So the order of news is
        /// the same as with the other create.
        enum class stat { known, missing, asked } has = stat::known;
    };
    struct node_news {
        node_event what;
        std::string path;
    };
    struct added_watch_news {
        told_change what;
    };
    struct log_line {
        std::string text;
    };
    using news = std::variant<reply_news, node_news, added_watch_news, log_line>;

    backend_listener& listener_;
    zhandle_t* zh_ = nullptr;
    dead_descriptor dead_;
    int fd_ = -1;            // the library's own descriptor: never registered anywhere (fact 3)
    ino_t inode_ = 0;        // identifies the socket behind fd_ (numbers are reused at once)
    std::uint64_t connection_ = 0;
    link_state reported_ = link_state::disconnected;
    std::size_t outstanding_ = 0;
    bool corked_ = false;
    bool in_batch_ = false;
    bool wants_write_ = false;
    fork_mark made_here_;
    bool ending_connection_ = false;  // on purpose: the library's log lines about the end are dropped
    bool telling_ = false;            // the listener is being called
    std::vector<news> news_;
    std::string last_failure_;
    std::string endpoint_;  // the server of the current connection, or of the last one,
    std::string server_;    // and the same with the server's name, for messages
    std::string tried_;     // the endpoint that was tried last, or is about to be tried
    std::vector<std::string> round_;  // those that are to be tried after that: next_round(), if there are none
    std::vector<server_address> servers_;
    std::map<std::string, std::size_t> refused_names_;  // how often a tunnel to this endpoint, or a login, failed
    std::map<std::string, int> refusing_;  // how often each server_ has refused the login since the last connection
    bool login_failed_ = false, login_refused_ = false;  // see backend
    bool secured_ = false;
    bool read_only_ = false;  // see open_params
    std::unique_ptr<tunnel> tunnel_;  // behind fd_; null if connections are not secured_
    std::unordered_map<op_id, std::unique_ptr<multi_call>> multis_;
    bool has_credentials_ = false;  // which a server may refuse
    bool refused_ = false;          // and which one has refused, without the library's knowledge
    owned_descriptor unread_;       // of the same socket as fd_: see ends_with_refusal(); only with credentials
    std::string last_bytes_;  // received since the goodbye: the last ones, as many as its answer has

    // Frames of our own. All but the first three belong to one connection, see lose_own().
    struct own_request {
        op_id id;
        own_question what;
        std::int32_t number;
        std::size_t ahead;  // requests of the library that were sent behind our one before, and are unanswered
        std::string watched;  // of requests about watches: the path
    };
    std::string chroot_;
    std::int32_t own_number_ = 0;  // of our last request
    std::list<own_request> own_;  // unanswered, in the order of sending
    std::size_t ahead_of_own_ = 0;  // the sum of own_request::ahead
    std::set<std::string> added_watches_;
    std::string unsent_;  // the rest of a frame of which a part was sent: nothing else may be
    std::chrono::steady_clock::time_point unsent_since_{};
    bool own_wants_write_ = false;
    std::string own_answer_;  // what has come of an answer of so many bytes
    std::size_t own_answer_size_ = 0;
    // The library has read whole frames only. False: it may be in the middle of one; true again behind the next that it
    // has read in whole.
    bool between_frames_ = true;
    std::size_t low_water_ = 1;

    // Requests that not all servers know.
    std::shared_ptr<known_requests> known_ = std::make_shared<known_requests>();
    std::deque<std::pair<op_id, std::int32_t>> doubtful_;  // unanswered ones of the library's, in the order of sending
    std::set<std::int32_t> answered_here_;  // on this connection: they are not doubtful
    std::set<std::int32_t> hung_up_at_;     // unanswered when this connection has ended
    bool is_refused_request_ = false;       // a request that it does not know: the server is hanging up
    bool left_by_us_ = false;               // the end of this connection says nothing of the server
    std::unordered_map<op_id, create_mode> without_stat_;  // creates under way
};

}  // namespace zkasio::detail
