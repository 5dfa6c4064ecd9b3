#pragma once

#include <zkasio/client_observer.hpp>
#include <zkasio/locks/detail/acquire_request.hpp>
#include <zkasio/locks/detail/queue/contender_stage.hpp>
#include <zkasio/locks/detail/queue/queue_key.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>

#include <cassert>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

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
