#pragma once

#include <zkasio/locks/detail/acquire_outcome.hpp>
#include <zkasio/locks/detail/acquire_request.hpp>
#include <zkasio/locks/detail/contender_stage.hpp>
#include <zkasio/locks/detail/queue_key.hpp>
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

class lock_queue;
struct contender;
using contender_ptr = std::shared_ptr<contender>;

/// A contender of our session: it wants the lock, waits for it, or has it. Lives on the client's strand. The thread of
/// its coroutine may look at `outcome`, `failed`, `path`, `czxid` and `hold` once `decided` has fired.
struct contender {
    contender(const session& on, acquire_request w) : asked(std::move(w)), decided(toolbox(on).make_one_shot_event()) {}

    stage now() const noexcept { return now_; }
    /// The only place where the stage changes. Test builds (without NDEBUG) end the process when the machine that
    /// docs/lock-queue.md draws does not allow it.
    void go_to(stage next) noexcept {
        assert(may_follow(now_, next) && "a contender must not go from this stage to that one");
        now_ = next;
    }

    acquire_request asked;
    std::shared_ptr<lock_queue> where;
    struct creation {
        std::string id;  // in the name of the node
        std::optional<pending_create> request;
    };
    std::unique_ptr<creation> creating;  // its outcome is not known yet
    std::uint64_t asked_at = 0;          // see queue_order::enter()
    queue_key at;
    std::string path;
    std::int64_t czxid = 0;
    session_hold hold;  // once it is granted, or the next in line
    running_bodies bodies;

    boot_clock::time_point since = boot_clock::now();  // it asks; from `decided` on: it has the lock
    one_shot_event decided;
    std::exception_ptr failed;  // to get the lock

    /// Of one that leaves.
    struct departure {
        std::shared_ptr<const void> work;                  // until nothing is left of it, see client::idle()
        std::optional<one_shot_event> gone;                // fired when its node is; if somebody wants to know
        bool over = false;                                 // its node is gone, or nobody will ever remove it
        std::exception_ptr failed;                         // to remove its node
        std::vector<std::weak_ptr<contender>> successors;  // to whom it has handed over the lock
    };
    std::unique_ptr<departure> leaving;
    departure& depart() {
        if (!leaving) leaving = std::make_unique<departure>();
        return *leaving;
    }

    /// In a catch block.
    void removal_failed() const noexcept {
        if (leaving) leaving->failed = std::current_exception();
    }
    void tell_gone() const noexcept {
        if (!leaving) return;
        leaving->over = true;
        leaving->work.reset();
        if (leaving->gone) leaving->gone->fire();
    }

    // There may be very many contenders, and what is small stands together.
    std::uint32_t queue_length = 0;  // contenders ahead that were known when it had to wait
    acquire_outcome outcome = acquire_outcome::undecided;  // written before `decided` is fired
    bool given_up = false;  // by its claim: looked at there alone, not on the strand
    bool node_deleted : 1 = false;  // somebody has deleted its node while it was an owner, at whichever stage
    bool handed_over : 1 = false;   // the lock, by another contender of ours
    bool followed : 1 = false;      // somebody else's node

private:
    stage now_ = stage::outside;
};

}  // namespace zkasio::lock_detail
