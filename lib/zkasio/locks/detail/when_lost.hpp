#pragma once

#include <zkasio/loss_reason.hpp>
#include <zkasio/session.hpp>

#include <functional>
#include <memory>

namespace zkasio::lock_detail {

/// The hold is lost, but its session lives: the nodes may still exist, and keep other clients out.
constexpr bool lost_in_session(loss_reason why) noexcept {
    return why == loss_reason::node_deleted || why == loss_reason::lease_ended || why == loss_reason::suspended;
}

/// Calls `f(reason)` on the strand, in a turn of its own, when the hold is lost in its session. From any thread, once
/// for each hold.
/// @param hold kept until `f` waits for the loss, and not longer.
void when_lost(const session& on, std::shared_ptr<const session_hold> hold, std::function<void(loss_reason)> f);

}  // namespace zkasio::lock_detail
