#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/back_off.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/detail/node_board.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/recipe/room_to_stand.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

/// Decides what the keeper of a persistent_node does about the node that it sees at the path.
namespace zkasio::membership_detail {

enum class node_step {
    create,      ///< there is no node
    new_name,    ///< the name of our sequential node is taken
    wait_until_gone,
    remove,      ///< left behind by a session that this client has given up while no server was reachable
    write_data,  ///< the node is ours, or can be taken over, and has other data than it should
    stay,        ///< the node is as it should be
};

struct node_facts {
    create_mode mode = create_mode::ephemeral;
    std::int64_t session_id = 0;
    std::int64_t created_by = 0;   ///< czxid of the node that this client has created, or written to; 0: none
    bool outcome_unknown = false;  ///< a create of this client may have been applied
    bool has_new_data = false;
    std::vector<std::int64_t> former_sessions;  ///< in which this client has kept the node before
};

/// Whether `seen` is the node that this keeper keeps, and has to remove when it leaves.
bool is_ours(const node_stat& seen, const node_facts& facts) noexcept;

node_step next_step(const std::optional<node_stat>& seen, const node_facts& facts);

/// Which persistent_node of a session keeps the node at a path. The node itself tells only the session: two of one
/// session would each take the node for its own. On the client's strand.
class node_claim : public session_local {
public:
    void session_over(std::error_code) noexcept override { holder_.reset(); }

    /// *Completes when* no other persistent_node has the claim; waits for one that is leaving. If another one has the
    /// claim, and `wanted_by` is to leave, completes with null.
    /// *Fails with* errc::invalid_argument if another one has the claim, and is not leaving.
    static asio::awaitable<std::shared_ptr<node_claim>> get(session on, std::shared_ptr<node_board> wanted_by);
    void release(const node_board& by) noexcept;

private:
    std::weak_ptr<node_board> holder_;
    std::optional<one_shot_event> released_;
};

/// Creates the node of a persistent_node, watches it, and removes it in the end. On the client's strand.
class node_keeper {
public:
    node_keeper(std::shared_ptr<node_board> board, persistent_node_options options);

    /// The body of run_in_each_session(). Returns when the node has left.
    static asio::awaitable<void> keep(std::shared_ptr<node_keeper> self, session on);
    /// Called when run_in_each_session() is over.
    void end(const std::exception_ptr& why);

    /// No keep() runs, and no node of this keeper can exist: leave() has nothing to wait for.
    bool is_idle() const noexcept { return !running_ && !may_stand(); }
    node_board& board() const noexcept { return *board_; }
    /// Whether there has been no session for this time.
    bool is_without_session_for(std::chrono::nanoseconds time) const noexcept {
        return !running_ && boot_clock::now() - running_until_ >= time;
    }
    /// The node stays, if there is one: leaving fails. To be called before the loop is stopped.
    void give_up() noexcept { given_up_ = true; }

private:
    static asio::awaitable<void> run(std::shared_ptr<node_keeper> self, session on);
    static asio::awaitable<void> create(std::shared_ptr<node_keeper> self, session on, one_shot_event wish);
    static asio::awaitable<void> hung_up_at_create(std::shared_ptr<node_keeper> self, session on, error lost,
                                                   node_board::wished_data data);
    static asio::awaitable<bool> find_lost(std::shared_ptr<node_keeper> self, session on);
    static asio::awaitable<void> pause_unless(std::shared_ptr<node_keeper> self, one_shot_event wish);
    static asio::awaitable<void> wait_for_parent(std::shared_ptr<node_keeper> self, session on, one_shot_event wish);
    static asio::awaitable<void> write(std::shared_ptr<node_keeper> self, session on, one_shot_event wish,
                                       node_stat seen);
    static asio::awaitable<bool> look(std::shared_ptr<node_keeper> self, session on, one_shot_event wish);
    static asio::awaitable<void> touch(std::shared_ptr<node_keeper> self, session on, one_shot_event wish);
    static asio::awaitable<void> remove_former(std::shared_ptr<node_keeper> self, session on, std::int32_t version);
    static asio::awaitable<void> remove(std::shared_ptr<node_keeper> self, session on);
    static asio::awaitable<void> remove_left(session on, std::string path, node_facts known);
    static asio::awaitable<void> remove_seen(session on, std::string path, node_facts known);

    void begin(const session& on);
    bool may_stand() const noexcept { return created_by_ != 0 || outcome_unknown_ || !lost_id_.empty(); }
    void forget_node() noexcept;
    bool has_no_name() const noexcept { return node_path_.empty(); }
    node_facts facts(const session& on) const;
    create_options how_to_create() const;
    std::string path_to_create();
    void create_failed(const error& e, bool was_unknown) noexcept;
    void stands(const node_stat& node, node_board::wished_data data);
    bool refuses_data(const error& why, const node_board::wished_data& data) const;
    boot_clock::time_point next_touch() const noexcept;

    const std::shared_ptr<node_board> board_;
    const persistent_node_options options_;
    std::shared_ptr<node_claim> claim_;  // in the session `last_`
    session last_;                       // the session of the last keep()
    bool running_ = false;               // keep() runs
    boot_clock::time_point running_until_{};  // when the last keep() ended
    bool given_up_ = false;
    room_to_stand room_;
    std::vector<std::int64_t> former_sessions_;  // the last few in which the node may have been created
    std::string node_path_;              // "": a sequential node that has no name yet
    std::int64_t created_by_ = 0;        // see node_facts
    bool outcome_unknown_ = false;       // see node_facts
    std::string lost_id_;                // protection id of a sequential create whose outcome is not known
    std::optional<back_off> pauses_;     // in the session `last_`
    boot_clock::time_point written_at_{};  // when this client sent its last write of the node
    bool may_write_ = true;                // false: the ACL of the node that stands forbids it
};

}  // namespace zkasio::membership_detail
