#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/session.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// How a contender's node is made: created, looked for when the answer is lost, and replaced by a reader's.
namespace zkasio::lock_detail {

/// The meaning of the answers to a queue's requests. Pure, as answer_of_removal().
enum class create_answer {
    created,
    lost,  ///< there may be a node
    no_directory,
    refused_for_now,  ///< there is no node: sent again after a pause
    failed,
};
create_answer answer_of_create(const error& e) noexcept;

/// The answer to a removal that has failed.
enum class removal_answer {
    successor_missing,  ///< the node still exists: the node of a successor, error::path(), was deleted
    session_over,
    failed,
};
/// @param over the session is known to be over.
removal_answer answer_of_removal(const error& e, bool over) noexcept;

class lock_queue;

/// Part of a lock_queue: looks for the nodes of creates whose answers were lost. One cut may lose thousands of answers,
/// so one search serves all creates that were lost before the search began. Contenders that were given up since are
/// included: their nodes have to be removed. On the strand.
class lost_creates {
public:
    explicit lost_creates(lock_queue& queue) : queue_(queue) {}
    /// @param id the id in the name of the node, if there is a node. @param hung_up see node_creation::after_loss().
    void add(const contender_ptr& c, std::string id, std::exception_ptr hung_up);
    /// Removes and returns all contenders that wait for the next search.
    std::vector<contender_ptr> take_waiting();

private:
    struct lost {
        contender_ptr who;
        std::string id;
        std::exception_ptr hung_up;
    };
    using look = std::pair<lost, pending_data>;
    asio::awaitable<void> search(std::shared_ptr<lock_queue> keeps_this_alive);
    asio::awaitable<bool> search_once();
    std::vector<look> look_at_found(const std::vector<lost>& round,
                                    const std::multimap<std::string, std::string>& names,
                                    const std::exception_ptr& failed);
    void found(const lost& l, const created& node);
    void not_found(const lost& l, const std::exception_ptr& failed);
    std::string prefix_of(const lost& l) const;

    lock_queue& queue_;
    std::vector<lost> waiting_;  // for the next search
    bool searching_ = false;
};

/// Replaces the node of a writer that has the lock, `writer`, by a reader's node, `path`, with the same sequence
/// number, in one transaction. Repeats the transaction until its outcome is certain. Nothing: the writer's node is
/// gone, or the new node is gone already.
asio::awaitable<std::optional<created>> replace_by_reader_node(session on, lock_spec_ptr as, std::string path,
                                                               std::string writer);

/// Part of a lock_queue: creates a contender's node, with all detours (directory, pause, search). Ends in
/// lock_queue::node_created(), or in fail(). On the strand.
class node_creation {
public:
    explicit node_creation(lock_queue& queue);
    /// Sends a create: stage::creating.
    void begin(const contender_ptr& c);
    /// The end of each detour: begins again, unless the detour has `failed` or the contender was given up.
    void after_detour(const contender_ptr& c, std::exception_ptr failed = nullptr);
    /// The answer to the create was lost, and there is no node: begins again, at once the first time, then after
    /// pauses. @param hung_up the contender fails with it: the servers hang up at this create (error::hung_up()).
    void after_loss(const contender_ptr& c, const std::exception_ptr& hung_up);
    /// Removes and returns all contenders on a detour: after_detour() will not be called for these contenders.
    std::vector<contender_ptr> take_waiting();

private:
    void create(const contender_ptr& c);
    void after_room(const contender_ptr& c);
    void wait_for_room();
    void room_changed();
    std::size_t path_bytes(const contender& c) const;
    void answered(const contender_ptr& c);
    void after_pause(const contender_ptr& c);
    void pause();
    void after_making_directory(const contender_ptr& c);
    asio::awaitable<void> make_directory_for_all(std::shared_ptr<lock_queue> keeps_this_alive, lock_spec_ptr spec);

    lock_queue& queue_;
    std::deque<contender_ptr> without_room_;  // see client_options::ephemeral_budget(); some may have left
    bool waits_for_room_ = false;
    std::size_t swept_ = 0;                   // how many were in it after the last removal of those that have left
    std::vector<contender_ptr> throttled_;    // for a pause, or the first answer
    bool pausing_ = false;
    back_off pauses_;
    std::vector<contender_ptr> without_directory_;
    bool making_directory_ = false;
    bool may_be_missing_ = true;   // the directory: no create was answered yet, or the last answer has said so
    std::size_t unanswered_ = 0;  // creates
    lost_creates lost_;
};

}  // namespace zkasio::lock_detail
