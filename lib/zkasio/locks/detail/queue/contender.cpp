#include <zkasio/locks/detail/queue/contender.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace zkasio::lock_detail {
namespace {

// In the order of the enumerators.
constexpr std::string_view names[] = {
    "outside",
    "creating",
    "creation_lost",
    "creation_found",
    "throttled",
    "waiting_for_directory",
    "replacing_writer",
    "abandoned_creating",
    "abandoned_searching",
    "waiting",
    "waiting_for_bodies",
    "owner_unconfirmed",
    "owner",
    "downgrading",
    "downgrading_abandoned",
    "left",
};

using enum stage;

constexpr stage_transition table[] = {
    {outside, creating},
    {outside, replacing_writer},
    {outside, waiting_for_bodies},
    {outside, left},  // refused before a create is sent

    {creating, waiting},
    {creating, creation_lost},
    {creating, throttled},
    {creating, waiting_for_directory},
    {creating, abandoned_creating},
    {creating, left},
    {creation_lost, creation_found},
    {creation_lost, creating},  // there was no node
    {creation_lost, waiting_for_bodies},
    {creation_lost, throttled},  // nor was there one the last time
    {creation_lost, abandoned_searching},
    {creation_lost, left},
    {creation_found, waiting},
    {creation_found, creating},  // the node was deleted after the search
    {creation_found, waiting_for_bodies},
    {creation_found, abandoned_creating},
    {creation_found, left},
    {throttled, creating},
    {throttled, waiting_for_bodies},
    {throttled, left},
    {waiting_for_directory, creating},
    {waiting_for_directory, waiting_for_bodies},
    {waiting_for_directory, left},

    {replacing_writer, owner},
    {replacing_writer, abandoned_searching},
    {replacing_writer, left},

    {abandoned_creating, left},
    {abandoned_searching, left},

    {waiting, owner},
    {waiting, owner_unconfirmed},
    {waiting, creating},  // its node was deleted: queues again, at the end
    {waiting, waiting_for_bodies},  // gives its place up
    {waiting, left},
    {waiting_for_bodies, creating},
    {waiting_for_bodies, left},

    {owner_unconfirmed, owner},
    {owner_unconfirmed, left},
    {owner, downgrading},
    {owner, left},
    {downgrading, owner},  // the downgrade has failed
    {downgrading, downgrading_abandoned},
    {downgrading, left},  // the reader is the owner now
    {downgrading_abandoned, owner},
    {downgrading_abandoned, left},
};

}  // namespace

std::string_view to_string(stage s) noexcept { return names[static_cast<std::size_t>(s)]; }

std::span<const stage_transition> stage_transitions() noexcept { return table; }

bool may_follow(stage from, stage to) noexcept {
    return std::any_of(std::begin(table), std::end(table),
                       [&](const stage_transition& t) { return t.from == from && t.to == to; });
}

stage after_giving_up(stage s) noexcept {
    switch (s) {
        case creating:
        case creation_found: return abandoned_creating;
        case creation_lost:
        case replacing_writer: return abandoned_searching;
        default: return left;
    }
}

}  // namespace zkasio::lock_detail
