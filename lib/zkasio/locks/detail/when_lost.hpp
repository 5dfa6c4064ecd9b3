#pragma once

#include <zkasio/loss_reason.hpp>
#include <zkasio/session.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace zkasio::lock_detail {

/// The hold is lost, but its session lives: the nodes may still exist, and keep other clients out.
constexpr bool lost_in_session(loss_reason why) noexcept {
    return why == loss_reason::node_deleted || why == loss_reason::lease_ended || why == loss_reason::suspended;
}

/// Calls `f(reason)` on the strand, in a turn of its own, when the hold is lost in its session. From any thread, once
/// for each hold.
/// @param hold kept until `f` waits for the loss, and not longer.
inline void when_lost(const session& on, std::shared_ptr<const session_hold> hold, std::function<void(loss_reason)> f) {
    const asio::any_io_executor strand = on.get_executor();
    asio::dispatch(strand, [strand, hold = std::move(hold), f = std::move(f)] {
        hold->on_lost([strand, f](loss_reason why) {
            // The code that finds the loss may be working on objects that `f` changes: hence a turn of its own.
            if (lost_in_session(why)) asio::post(strand, [f, why] { f(why); });
        });
    });
}

}  // namespace zkasio::lock_detail
