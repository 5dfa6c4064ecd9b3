#pragma once

#include <zkasio/barriers/detail/double_barrier_step.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// The requests of a member of a double barrier. @param on patient, in all functions here.
namespace zkasio::barrier_detail {

/// The children of the directory; none, if there is no directory.
asio::awaitable<barrier_children> children_of(session on, std::string directory);

/// Those of the `members` that still exist, without `own`. All reads are sent together: one round trip.
asio::awaitable<std::vector<other_member>> read_others(session on, std::string directory, std::string own,
                                                       std::vector<std::string> members);

/// Removes the node `ready` with this czxid, unless one of the others has joined its round since they were read.
/// Another client may remove this node at the same time and then begin a round with a new one: a write before the
/// removal tells which node the removal is about. False: the outcome is unknown.
asio::awaitable<bool> remove_left_over(session on, std::string directory, std::int64_t czxid,
                                       std::vector<other_member> others);

}  // namespace zkasio::barrier_detail
