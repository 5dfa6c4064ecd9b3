#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace zkasio::lock_detail {

/// How far a contender has come on its way through the queue; see docs/lock-queue.md, "The stages of a contender".
enum class stage : std::uint8_t {
    outside,                ///< it has not asked for anything yet
    joining,                ///< a reader who tries to get a node beside readers who hold the lock
    creating,               ///< the create of its node is under way
    creation_lost,          ///< the answer to that create was lost: a search tells whether there is a node
    creation_found,         ///< the search has found its node: a look at it is under way, for its token
    throttled,              ///< a server with too much to do has refused the create: sent again after a pause
    waiting_for_directory,  ///< there was no directory to create the node in: it is being made
    replacing_writer,       ///< the reader that a writer goes on as: its node takes the place of the writer's
    abandoned_creating,     ///< given up while its create, or the look at its node, was under way
    abandoned_searching,    ///< given up while a search or a transaction for its node was under way
    waiting,                ///< it has a node, and waits for its turn
    owner_unconfirmed,      ///< handed the lock during a cut: it is told when that removal is answered
    owner,                  ///< it has the lock, and knows it
    downgrading,            ///< an owner whose node is being replaced by a reader's
    downgrading_abandoned,  ///< the same, given up meanwhile: whatever node comes of it is removed
    left,                   ///< it has no place in the queue, and gets none any more
};

std::string_view to_string(stage s) noexcept;

struct stage_transition {
    stage from, to;
};
/// All that are allowed.
std::span<const stage_transition> stage_transitions() noexcept;
bool may_follow(stage from, stage to) noexcept;

/// It counts as about to come: whoever comes after it may learn from its place where itself stands. Not so
/// abandoned_searching, of which nothing is known.
constexpr bool is_entering(stage s) noexcept { return s >= stage::joining && s <= stage::abandoned_creating; }
/// Nobody wants the lock for it any more.
constexpr bool has_given_up(stage s) noexcept {
    return s == stage::abandoned_creating || s == stage::abandoned_searching || s == stage::left;
}
/// It has the lock.
constexpr bool owns(stage s) noexcept { return s >= stage::owner_unconfirmed && s <= stage::downgrading_abandoned; }
/// Where it goes when it gives up in this stage.
stage after_giving_up(stage s) noexcept;

}  // namespace zkasio::lock_detail
