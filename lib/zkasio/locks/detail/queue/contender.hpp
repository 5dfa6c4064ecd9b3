#pragma once

#include <zkasio/client_observer.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>

#include <cassert>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

/// How far a contender has come on its way through the queue; see docs/lock-queue.md, "The stages of a contender".
enum class stage : std::uint8_t {
    outside,                ///< nothing was requested yet
    creating,               ///< the create of its node is under way
    creation_lost,          ///< the answer to the create was lost: a search tells whether there is a node
    creation_found,         ///< the search has found the node: a read of its token is under way
    throttled,              ///< the create waits for a pause, for room, or for the first answer
    waiting_for_directory,  ///< the create found no directory: the directory is being created
    replacing_writer,       ///< the reader of a downgrade: its node is about to replace the writer's node
    abandoned_creating,     ///< given up while the create, or the read of the token, was under way
    abandoned_searching,    ///< given up while a search or a transaction for the node was under way
    waiting,                ///< has a node, and waits for its turn
    waiting_for_bodies,     ///< has no place: bodies under a lost lock of this session still run (G40)
    owner_unconfirmed,      ///< got the lock during a cut: told when the removal of the predecessor's node is answered
    owner,                  ///< has the lock, and its coroutine was told
    downgrading,            ///< an owner whose node is being replaced by a reader's
    downgrading_abandoned,  ///< given up while downgrading: the node that the downgrade leaves is removed
    left,                   ///< has no place in the queue, and will get none
};

std::string_view to_string(stage s) noexcept;

struct stage_transition {
    stage from, to;
};
/// All allowed transitions.
std::span<const stage_transition> stage_transitions() noexcept;
bool may_follow(stage from, stage to) noexcept;

/// Whether a node is expected for this contender: a later contender can derive its own place from that node's number
/// (G2). False for abandoned_searching: nothing is known of that node.
constexpr bool is_entering(stage s) noexcept { return s >= stage::creating && s <= stage::abandoned_creating; }
/// Whether the contender no longer wants the lock.
constexpr bool has_given_up(stage s) noexcept {
    return s == stage::abandoned_creating || s == stage::abandoned_searching || s == stage::left;
}
/// Whether the contender has the lock.
constexpr bool owns(stage s) noexcept { return s >= stage::owner_unconfirmed && s <= stage::downgrading_abandoned; }
/// The stage of a contender after it gives up in stage `s`.
stage after_giving_up(stage s) noexcept;

/// The outcome of an acquire.
enum class acquire_outcome : std::uint8_t {
    undecided,
    granted,
    refused,  ///< the lock was not free and the acquire was not to wait; or the acquire was given up
    failed,   ///< with contender::failed
};

class lock_queue;
struct contender;
using contender_ptr = std::shared_ptr<contender>;

/// A contender of this session: wants the lock, waits for it, or has it. Lives on the client's strand. Once `decided`
/// has fired, the thread of the contender's coroutine may read `outcome`, `failed`, `path`, `czxid` and `hold`.
struct contender {
    contender(const session& on, acquire_request w) : asked(std::move(w)), decided(toolbox(on).make_one_shot_event()) {}

    stage now() const noexcept { return now_; }
    /// The only place where the stage changes. Test builds (without NDEBUG) end the process if the state machine in
    /// docs/lock-queue.md does not allow the change.
    void go_to(stage next) noexcept {
        assert(may_follow(now_, next) && "a contender must not go from this stage to that one");
        now_ = next;
    }

    acquire_request asked;
    std::shared_ptr<lock_queue> where;
    struct creation {
        std::string id;  // the random id in the node's name
        std::optional<pending_create> request;
    };
    std::unique_ptr<creation> creating;  // a create whose outcome is not known yet
    std::uint64_t asked_at = 0;          // see queue_order::enter()
    queue_key at;
    std::string path;
    std::int64_t czxid = 0;
    session_hold hold;  // set once the contender is the owner or the next in line
    running_bodies bodies;

    boot_clock::time_point since = boot_clock::now();  // when it asked; from `decided` on: when it got the lock
    one_shot_event decided;
    std::exception_ptr failed;  // why the contender did not get the lock

    /// The state of a contender that leaves.
    struct departure {
        std::shared_ptr<const void> work;                  // until nothing of the contender is left, see client::idle()
        std::optional<one_shot_event> gone;                // fired by tell_gone(); set if queue_claim::gone() may wait
        bool over = false;                                 // the node is gone, or will not be removed
        std::exception_ptr failed;                         // why the node was not removed
        std::vector<std::weak_ptr<contender>> successors;  // the contenders that got the lock from this one
    };
    std::unique_ptr<departure> leaving;
    departure& depart() {
        if (!leaving) leaving = std::make_unique<departure>();
        return *leaving;
    }

    /// To be called in a catch block.
    void removal_failed() const noexcept {
        if (leaving) leaving->failed = std::current_exception();
    }
    void tell_gone() const noexcept {
        assert(!owns(now_) && "the owner's node is still needed");
        if (!leaving) return;
        leaving->over = true;
        leaving->work.reset();
        if (leaving->gone) leaving->gone->fire();
    }

    // Small members are grouped to save memory: there may be very many contenders.
    bool create_was_lost = false;  // with the connection, and certainly not applied
    std::uint32_t queue_length = 0;  // known contenders ahead when this one had to wait
    acquire_outcome outcome = acquire_outcome::undecided;  // written before `decided` is fired
    bool given_up = false;  // set and read only by the claim, not on the strand
    bool node_deleted : 1 = false;  // the node was deleted while the contender was an owner, at any owner's stage
    bool handed_over : 1 = false;   // the lock came from another contender of this session
    bool followed : 1 = false;      // the contender has waited for the end of another session's node
    bool behind_gap : 1 = false;    // contenders of other sessions stood between it and those of its own
    hand_over came_from() const noexcept {
        return handed_over ? hand_over::local : followed || behind_gap ? hand_over::remote : hand_over::none;
    }

private:
    stage now_ = stage::outside;
};

}  // namespace zkasio::lock_detail
