#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace zkasio::lock_detail {

/// How far a contender has come on its way through the queue. docs/architecture.md, "The stages of a contender", draws the transitions.
enum class stage : std::uint8_t {
    outside,                ///< it has not asked for anything yet
    joining,                ///< a reader who tries to get a node beside readers who hold the lock
    creating,               ///< the create of its node is under way
    creation_lost,          ///< the answer to that create was lost; a search tells whether there is a node
    creation_found,         ///< the search has found its node; a look at it is under way, for its token
    throttled,              ///< a server with too much to do has refused the create, which is sent again after a pause
    waiting_for_directory,  ///< there was no directory to create the node in; it is being made
    replacing_writer,       ///< the reader that a writer goes on as: its node takes the place of the writer's
    abandoned_creating,     ///< given up while its create, or the look at its node, was under way: the node goes when it is known
    abandoned_searching,    ///< given up while a search or a transaction was under way: the node, if there is one, goes likewise
    waiting,                ///< it has a node, and waits for its turn
    owner_unconfirmed,      ///< it was handed the lock during a cut, and is told when the removal that made it the owner is answered
    owner,                  ///< it has the lock, and knows it
    downgrading,            ///< an owner whose node is being replaced by a reader's
    downgrading_abandoned,  ///< the same, given up meanwhile: whatever node comes of it goes
    left,                   ///< it has no place in the queue, and gets none any more
};

std::string_view to_string(stage s) noexcept;

struct stage_transition {
    stage from, to;
};
/// All that are allowed.
std::span<const stage_transition> stage_transitions() noexcept;
bool may_follow(stage from, stage to) noexcept;

/// A node of it will come, as far as is known, behind those that are in the queue already.
constexpr bool is_entering(stage s) noexcept {
    return s >= stage::joining && s <= stage::abandoned_creating;
}
/// Nobody wants the lock for it any more.
constexpr bool has_given_up(stage s) noexcept {
    return s == stage::abandoned_creating || s == stage::abandoned_searching || s == stage::left;
}
/// It has the lock.
constexpr bool owns(stage s) noexcept { return s >= stage::owner_unconfirmed && s <= stage::downgrading_abandoned; }
/// Where it goes when it gives up in this stage.
stage after_giving_up(stage s) noexcept;

}  // namespace zkasio::lock_detail
