#pragma once

#include <zkasio/locks/detail/acquire_request.hpp>
#include <zkasio/locks/detail/queue_key.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/one_shot_event.hpp>
#include <zkasio/pending.hpp>
#include <zkasio/session.hpp>

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

/// One who wants the lock, waits for it, or has it. Lives on the strand; others may look at it once `decided` has fired.
struct contender {
    contender(const session& on, acquire_request w) : asked(std::move(w)), decided(on.make_one_shot_event()) {}

    enum class state { entering, waiting, owner, left };

    acquire_request asked;
    std::shared_ptr<lock_queue> where;
    state now = state::entering;
    struct creation {
        std::string id;  // in the name of the node
        std::optional<pending_create> request;
    };
    std::unique_ptr<creation> creating;  // its outcome is not known yet
    std::uint64_t asked_at = 0;          // see queue_order::enter()
    queue_key at;
    std::string path;
    std::int64_t czxid = 0;
    std::optional<session_hold> hold;
    running_bodies bodies;

    one_shot_event decided;
    bool settled = false;
    bool downgrading = false, given_up = false;  // given up meanwhile
    bool has_no_node = false;                    // an owner whose node somebody has deleted
    bool inherits = false;                       // an owner that is not to know before the removal that made it one is answered
    bool entering = false;                       // among lock_queue's entering ones
    bool granted = false, displaced = false;     // refused because its node is gone
    std::exception_ptr failed;  // to get the lock; or, who has had it, to remove its node

    /// Of an owner that has left.
    struct departure {
        std::optional<one_shot_event> gone;                      // its node is; when somebody wants to know
        std::vector<std::weak_ptr<contender>> successors;  // that it has handed over to
    };
    std::unique_ptr<departure> leaving;

    /// In a catch block. Who never had the lock may be looking at `failed` meanwhile, and would not care.
    void removal_failed() noexcept {
        if (leaving && leaving->gone) failed = std::current_exception();
    }
    void tell_gone() const noexcept {
        if (leaving && leaving->gone) leaving->gone->fire();
    }
};

}  // namespace zkasio::lock_detail
