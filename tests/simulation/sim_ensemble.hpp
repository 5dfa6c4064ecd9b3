#pragma once

#include "simulation/sim_tree.hpp"

#include <zkasio/detail/core.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::test {

class sim_link;

/// A ZooKeeper in memory, for any number of clients on one thread. Nothing happens by itself: whatever may happen next
/// is one of steps(), and who drives it chooses one and takes it.
///
/// Kept as ZooKeeper keeps it: the requests of a session are applied in order; answers and watch events of a session
/// arrive in order, an event before the answer to any later read; writes are ordered among all sessions; each session
/// talks to a server of its own, which, if `lagging`, learns of the others' writes later.
class sim_ensemble {
public:
    /// A choice of what may happen next.
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

    /// What the core of client number `client` is built with.
    detail::backend_factory factory(int client);

    bool lagging = false;
    std::chrono::milliseconds session_timeout{600'000};  ///< so long that no timer of the client's matters
    /// Random decisions: a number below the argument.
    std::function<std::size_t(std::size_t)> pick = [](std::size_t) { return std::size_t{0}; };
    std::function<void(const sim_txn&)> on_commit = [](const sim_txn&) {};
    /// A client's watch has told it that a node is gone. May be empty.
    std::function<void(int client, const std::string& path, std::int64_t czxid)> on_told_removed;
    std::function<void(std::string)> on_log;  ///< may be empty

    // ----------------------------------------------------------------------------------------- what may happen
    void list_steps(std::vector<step>& steps) const;  ///< instead of what is in it
    bool idle() const;                                ///< there are none
    void take(const step& s);

    // ----------------------------------------------------------------------------------------- what a test does
    /// The connection of this client breaks. Of the requests that were not carried out yet the first `applied` are, but
    /// nobody learns of it; of the answers under way the first `delivered` arrive. False when there is none.
    bool drop_connection(int client, std::size_t applied, std::size_t delivered);
    bool drop_connection(int client);  ///< the numbers at random
    /// The servers end its session. False when there is none.
    bool expire(int client);
    /// An operator's request, carried out at once.
    std::error_code operate(const detail::multi_op& op);
    /// As servers do, some time after the last child of a container is gone.
    void remove_empty_containers();
    void set_next_sequence(const std::string& path, std::int32_t next) { tree_.set_next_sequence(path, next); }

    // ------------------------------------------------------------------------------------------ what there is
    const sim_tree& tree() const noexcept { return tree_; }
    std::int64_t session_of(int client) const;  ///< 0: none
    bool alive(std::int64_t session) const;
    std::size_t watches() const;   ///< that servers hold
    std::size_t sessions() const;  ///< that live
    std::size_t requests_under_way(int client) const;
    std::size_t answers_under_way(int client) const;
    std::string next_request(int client) const;  ///< "create /a", or nothing
    std::size_t backends_alive() const noexcept { return links_.size(); }

private:
    friend class sim_link;

    sim_link* link_of(int client) const;
    sim_txn begin(std::int64_t session);
    void commit(sim_txn txn);
    std::int64_t open_session();
    void end_session(std::int64_t session);
    std::int64_t last_zxid() const noexcept { return static_cast<std::int64_t>(log_.size()); }

    sim_tree tree_;             // as the leader has it
    std::vector<sim_txn> log_;  // number i has zxid i + 1
    std::map<std::int64_t, bool> sessions_;  // whether they live
    std::vector<sim_link*> links_;
};

/// "apply create", for logs.
std::string to_string(const sim_ensemble::step& s);

}  // namespace zkasio::test
