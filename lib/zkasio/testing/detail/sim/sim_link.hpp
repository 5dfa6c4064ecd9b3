#pragma once

#include <zkasio/testing/detail/sim/sim_ensemble.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace zkasio::testing_detail {

/// The connection of one client: the client's end (sim_link.cpp) and the server's end (sim_link_server.cpp). Its
/// "socket" is an eventfd, readable when something has arrived.
class sim_link final : public detail::backend {
public:
    sim_link(sim_ensemble& ensemble, int client, detail::backend_listener& listener);
    ~sim_link() override;

    // --------------------------------------------------------------------------------------------- the client's end
    void open(const detail::open_params& p) override;
    bool has_socket() const override { return state_ != state::none; }
    detail::interest next_interest() override;
    detail::drain_result process(bool readable, bool writable) override;
    std::error_code submit(detail::op_id id, const detail::request& r) override;
    bool is_settled() const override { return true; }  // all events are told in process()
    void begin_batch() override {}
    void end_batch() override {}
    void abort_connection() override;
    void set_servers(const std::vector<detail::server_address>&) override {}
    void forget_watch(const std::string& path, detail::watch_kind kind) override;
    std::int64_t session_id() const override { return session_; }
    std::string session_password() const override { return password; }
    std::chrono::milliseconds session_timeout() const override { return timeout_; }
    std::string last_failure() const override { return "connection reset"; }
    std::string current_server() const override { return "simulated:2181"; }
    bool is_zookeeper() const override { return requests_known_->is_zookeeper(current_server()); }
    bool send_goodbye() override;
    detail::goodbye_result answer_to_goodbye() override;
    void close() override;

    // --------------------------------------------------------------------------------------------- the server's end
    int client() const noexcept { return client_; }
    std::int64_t session() const noexcept { return attached_ ? server_session_ : session_; }
    bool attached() const noexcept { return attached_; }
    bool read_only() const noexcept { return read_only_; }  ///< see open_params
    std::size_t watches() const { return armed_.size() + added_paths().size(); }
    void list_watched(std::set<std::string>& paths) const {
        for (const watch_key& key : armed_) paths.insert(key.first);
        paths.merge(added_paths());
    }
    /// The armed watches, as text.
    std::string watched() const {
        std::string text;
        for (const watch_key& key : armed_) text += ' ' + name_of(key);
        for (const std::string& path : added_paths()) text += ' ' + path + "/+";
        return text;
    }
    std::size_t requests() const noexcept { return requests_.size(); }
    std::size_t answers() const noexcept { return outgoing_.size(); }
    std::int64_t connected_at() const noexcept { return connected_at_; }
    std::string next_request() const;
    std::string next_answer() const;

    void list_steps(std::vector<sim_ensemble::step>& steps);
    void connect();
    void apply();
    void catch_up(std::int64_t until);
    void catch_up_one() { catch_up(known_ + 1); }
    void deliver();
    void drop(std::size_t applied, std::size_t delivered, bool by_server = false, std::int32_t at_request = 0);

private:
    using watch_key = std::pair<std::string, detail::watch_kind>;
    static std::string name_of(const watch_key& key) {  // "/*": a watch of the children
        return key.first + (key.second == detail::watch_kind::children ? "/*" : "");
    }

    struct asked {
        detail::op_id id;
        detail::request what;
        bool without_stat = false;  // a create: the other one, and a read, both as one request here
    };
    bool knows(const asked& a) const;
    struct goodbye {};
    using packet = std::variant<asked, goodbye>;

    struct answered {
        detail::op_id id;
        detail::reply what;
        std::int64_t zxid;
    };
    static constexpr std::int64_t no_session = -1;  ///< no server has a session with this id
    static constexpr const char* password = "0123456789abcdef";
    struct event {
        detail::node_event what;
        std::string path;
        std::int64_t czxid;  ///< of the changed node (its path may belong to another node now)
        std::int64_t zxid;   ///< of the change
    };
    struct up {
        std::int64_t session;
    };
    struct expired {};
    struct lost {
        bool by_server = false;  // it has hung up
        std::int32_t at_request = 0;  // because of one that it does not know: its opcode
    };
    struct auth_refused {};
    struct said_goodbye {};
    using arrival = std::variant<answered, event, up, expired, lost, auth_refused, said_goodbye>;

    enum class state {
        none,
        connecting,
        connected,
    };

    std::string with_chroot(const std::string& path) const;
    void add_chroot(detail::request& r) const;
    void strip_chroot(std::string& path) const;
    void arrive(arrival&& a);
    void handle(arrival&& a);
    void handle(answered&& a);
    void handle(event&& e);
    void begin_connecting();
    void fail_all(std::error_code code);
    void register_watch(const detail::request& r, const std::error_code& code);

    bool authenticate(const detail::add_auth_request& a);
    void serve(packet p);
    testing::traffic& counts() { return ensemble_.traffic_[client_]; }
    void send(arrival a);  // counts what leaves the server
    detail::reply serve(const detail::request& r);
    bool is_refused(const detail::request& r, detail::reply& result) const;
    detail::reply read(const detail::request& r);
    detail::reply write(const detail::request& r);
    detail::reply read_own(const detail::request& r);
    std::set<std::string> added_paths() const;
    bool is_added(detail::watch_kind kind, const std::string& path, detail::node_event e) const;
    const sim_tree& view();
    sim_tree tree_at(std::int64_t number) const;
    void fire(const sim_change& c);
    void fire(detail::node_event e, const std::string& path, std::int64_t czxid,
              std::initializer_list<detail::watch_kind> kinds, const acl& entries);

    sim_ensemble& ensemble_;
    const int client_;
    detail::backend_listener& listener_;
    const int descriptor_;

    // the client's end
    state state_ = state::none;
    bool connects_next_ = false;  // with the next call of next_interest()
    std::uint64_t connection_ = 0;
    std::int64_t session_ = 0;
    std::chrono::milliseconds asked_timeout_{0}, timeout_{0};
    std::vector<detail::add_auth_request> auth_;  // presented on each connection
    std::string chroot_;  // part of the paths kept here, but not of those in requests and answers
    std::int64_t last_seen_ = 0;                                    // the highest zxid of an answer
    std::set<watch_key> registered_;  // which the library would set again on the next connection
    std::set<std::string> known_added_;  // added watches of this connection
    std::shared_ptr<detail::known_requests> requests_known_;
    std::deque<std::pair<detail::op_id, detail::request>> outstanding_;
    std::deque<arrival> arrived_;
    bool readable_ = false;  // the eventfd has been written to, and not been read
    bool closed_ = false, goodbye_sent_ = false, read_only_ = false;
    detail::goodbye_result goodbye_result_ = detail::goodbye_result::none_yet;

    // the server's end
    bool handshaking_ = false;  // the server has not seen the handshake yet
    bool attached_ = false;
    std::int64_t server_session_ = 0;  // the client may not know it yet
    std::deque<packet> requests_;
    std::deque<arrival> outgoing_;
    std::set<watch_key> armed_;
    std::map<watch_key, bool> added_;  // of data and of children, as a server has them; true: recursive
    identities who_;
    std::optional<sim_tree> view_;  // the tree that this server has; none: the leader's
    std::int64_t known_ = 0;  // how many transactions of the ensemble's log this server has
    std::int64_t connected_at_ = 0;  // known_ when the connection began
};

}  // namespace zkasio::testing_detail
