#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace zkasio::lock_detail {

/// How far a contender has come on its way through the queue; see docs/lock-queue.md, "The stages of a contender".
enum class stage : std::uint8_t {
    outside,                ///< nothing was requested yet
    creating,               ///< the create of its node is under way
    creation_lost,          ///< the answer to the create was lost: a search tells whether there is a node
    creation_found,         ///< the search has found the node: a read of its token is under way
    throttled,              ///< a server has refused the create for now: sent again after a pause
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

}  // namespace zkasio::lock_detail
