#pragma once

#include <zkasio/testing/detail/sim/sim_tree.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <zkasio/detail/connection/link.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio::testing_detail {

class sim_link;

/// A ZooKeeper in memory, for any number of clients on one thread. Nothing happens without a call: list_steps() lists
/// the steps that are possible next; the caller chooses one and takes it.
///
/// Guarantees as in ZooKeeper: the requests of a session are applied in order; answers and watch events of a session
/// arrive in order, an event before the answer to any later read; writes are ordered among all sessions. Each session
/// talks to a server of its own; if `lagging`, that server learns of writes of other sessions later.
class sim_ensemble {
public:
    /// A step that is possible next.
    struct step {
        enum class kind {
            connect,   ///< a handshake reaches a server
            apply,     ///< the next request of a session is carried out
            catch_up,  ///< the server of a session learns of one more transaction
            deliver,   ///< the next answer or event reaches the client
        };
        kind what;
        sim_link* whose;
        int client;
    };

    sim_ensemble();
    ~sim_ensemble();
    sim_ensemble(const sim_ensemble&) = delete;
    sim_ensemble& operator=(const sim_ensemble&) = delete;

    /// The factory of the backend of client number `client`.
    detail::backend_factory factory(int client);

    bool lagging = false;
    /// As with localSessionsEnabled: a new session, too, may begin at a server that lags behind the previous session's.
    bool new_sessions_lag = false;
    std::size_t most_lag = 1'000'000;  ///< the most transactions that a server lags behind when a client connects
    int throttled = 0;                 ///< percent of the requests that a server rejects with zk_errc::throttled
    /// By default so long that no timer of the client matters; 0: the timeout that each client asks for.
    std::chrono::milliseconds session_timeout{600'000};
    /// The bounds of the session timeouts that are granted.
    std::chrono::milliseconds least_timeout{0}, most_timeout = std::chrono::milliseconds::max();
    /// In bytes: a larger request ends the connection.
    std::size_t max_request = static_cast<std::size_t>(-1);
    bool know_containers = true;  ///< false: they hang up at the request, without an answer
    /// False: they do not know the create that answers with a stat, or no removal of a watch: as know_multi_read.
    bool know_create2 = true, know_watch_removal = true;
    /// False, as before 3.6: to a request whose frame is not the library's they answer "unimplemented", and hang up.
    bool know_multi_read = true, hang_up_at_unknown = true;
    /// False: rule K3 of known_requests holds for them, and they hang up without that answer.
    bool are_zookeepers = true;
    /// As up to 3.8 (ZOOKEEPER-4466): at one path, an added watch and the watch of a read replace each other.
    bool one_watch_at_a_path = false;
    /// Random decisions: a number below the argument.
    std::function<std::size_t(std::size_t)> pick = [](std::size_t) { return std::size_t{0}; };
    /// The servers' time, in milliseconds since 1970. If empty, the number of transactions is the time.
    std::function<std::int64_t()> clock;
    std::function<void(const sim_txn&)> on_commit = [](const sim_txn&) {};
    /// A handshake has resumed a session, and so renewed it; its connection may end before anybody asks list_heard().
    std::function<void(std::int64_t session)> on_resumed = [](std::int64_t) {};
    /// Called when a watch, which the client has not left, has told that a node is gone. May be empty.
    std::function<void(int client, const std::string& path, std::int64_t czxid)> on_told_removed;
    std::function<void(std::string)> on_log;  ///< may be empty

    // ----------------------------------------------------------------------------------------- what may happen
    void list_steps(std::vector<step>& steps) const;  ///< replaces the content of `steps`
    bool idle() const;                                ///< no step is possible
    void take(const step& s);

    // ----------------------------------------------------------------------------------------- what a test does
    /// The connection of this client breaks. Of the requests not carried out yet, the first `applied` are carried out,
    /// but not answered; of the answers under way, the first `delivered` arrive. False: there is no connection.
    bool drop_connection(int client, std::size_t applied, std::size_t delivered);
    bool drop_connection(int client);  ///< both numbers at random
    /// The servers end the client's session. False: there is none.
    bool expire(int client);
    bool expire_session(std::int64_t session);  ///< also a session that its client may have given up
    /// Stops the process of this client: nothing reaches the client until continue_process(), then everything at once.
    void stop_process(int client);
    void continue_process(int client);
    bool is_stopped(int client) const { return stopped_.contains(client); }
    /// Nothing passes between this client and its server, in either direction, and neither side is told.
    void silence(int client) { silent_.insert(client); }
    void end_silence(int client) { silent_.erase(client); }
    bool is_silent(int client) const { return silent_.contains(client); }
    /// The connection of this client breaks, and there is no new one until let_in().
    void cut_off(int client);
    void let_in(int client);
    /// As cut_off(); but until let_in(), the client may connect to a read-only server, which stays as it is now.
    void lose_quorum(int client);
    bool has_read_only_server(int client) const { return read_only_known_.contains(client); }
    bool is_cut_off(int client) const { return cut_off_.contains(client); }
    /// From now on a server answers this client's handshakes and hangs up, until let_in().
    void hang_up(int client);
    bool is_hung_up(int client) const { return hung_up_.contains(client); }
    /// Requests about this node and about nodes below it fail with `why`. With no_auth the ACLs of these nodes change.
    void refuse(const std::string& path, std::error_code why);
    void accept(const std::string& path);
    /// An operator's request, carried out at once.
    std::error_code operate(const detail::multi_op& op);
    std::error_code operate(const std::vector<detail::multi_op>& ops);  ///< all of them or none
    std::error_code operate(const detail::set_acl_request& r);
    /// Removes containers whose last child is gone, as servers do after some time.
    void remove_empty_containers();
    void set_next_sequence(const std::string& path, std::int32_t next) { tree_.set_next_sequence(path, next); }

    // ------------------------------------------------------------------------------------------ what there is
    const sim_tree& tree() const noexcept { return tree_; }
    const std::vector<sim_txn>& transactions() const noexcept { return log_; }  ///< all, also those without changes
    std::int64_t session_of(int client) const;  ///< 0: none
    bool has_connection(int client) const;  ///< as the servers see it
    bool alive(std::int64_t session) const;
    std::size_t watches() const;   ///< held by servers
    std::size_t watches_of(int client) const;
    std::string watched(int client) const;
    std::vector<std::string> watched_paths() const;  ///< by any client; sorted, each once
    /// In all sessions of this client.
    testing::traffic traffic_of(int client) const;
    testing::traffic whole_traffic() const;
    /// How long the client's session lives without a connection. 0: there is no session.
    std::chrono::milliseconds granted_timeout(int client) const;
    /// The zxid that this client's server knew when the connection began; 0: there was no connection in this session.
    std::int64_t connected_at(int client) const;
    std::size_t sessions() const noexcept { return sessions_.size(); }  ///< live ones
    /// The live sessions, and how long each of them lives without a connection.
    const std::map<std::int64_t, std::chrono::milliseconds>& session_timeouts() const noexcept { return sessions_; }
    /// Appends the sessions of which a server hears at this moment.
    void list_heard(std::vector<std::int64_t>& to) const;
    std::size_t requests_under_way(int client) const;
    std::size_t answers_under_way(int client) const;
    std::string next_request(int client) const;  ///< "create /a", or empty
    std::size_t backends_alive() const noexcept { return links_.size(); }
    const std::size_t* readable_links() const noexcept { return &readable_links_; }  ///< how many wait for process()

private:
    friend class sim_link;

    sim_link* link_of(int client) const;
    void end_read_only(int client);
    bool is_possible(const step& s) const;
    std::int64_t first_known(bool new_session, std::int64_t seen) const;
    std::error_code refusal_of(const std::string& path) const;
    bool puts_off() const { return throttled > 0 && pick(100) < static_cast<std::size_t>(throttled); }
    sim_txn begin(std::int64_t session);
    void commit(sim_txn txn);
    std::chrono::milliseconds grant(std::chrono::milliseconds asked_for) const;
    void touch_acls(const std::string& path);
    std::int64_t open_session(std::chrono::milliseconds timeout);
    void end_session(std::int64_t session);
    void require_readable_end(std::int64_t session) const;
    std::int64_t last_zxid() const noexcept { return static_cast<std::int64_t>(log_.size()); }

    sim_tree tree_;             // as the leader has it
    std::vector<sim_txn> log_;  // number i has zxid i + 1
    std::map<std::int64_t, std::chrono::milliseconds> sessions_;  // the live ones
    std::vector<sim_link*> links_;
    std::size_t readable_links_ = 0;
    std::map<int, testing::traffic> traffic_;  // by client
    std::map<std::string, std::error_code> refused_;
    std::set<int> stopped_, silent_, cut_off_, hung_up_;  // clients
    std::map<int, std::int64_t> read_only_known_;  // what the read-only server of a client knows: up to this zxid
};

/// "apply create", for logs.
std::string to_string(const sim_ensemble::step& s);

}  // namespace zkasio::testing_detail
