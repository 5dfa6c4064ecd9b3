#pragma once

#include <zkasio/cache/cache.hpp>
#include <zkasio/cache/children_cache.hpp>
#include <zkasio/membership/group.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How the nodes of members are named, and what is read from them.
namespace zkasio::membership_detail {

/// A name for a node of a new member. @param unique 32 hex digits, for the parties.
std::string member_name(group_names names, std::string_view id, std::string_view unique);

/// The data of the node of a member.
std::string member_data(group_names names, std::string_view id, std::string data);

/// Nothing for a child that is no member.
std::optional<member_info> member_of(group_names names, std::string_view name, std::string_view data);

/// Whether the nodes' data have to be read: they hold the ids, or data that members want to be seen.
constexpr bool needs_data(group_names names) noexcept { return names != group_names::kazoo_shallow_party; }

group_view members_in(group_names names, const children_view& children, const std::string& directory);

/// Brings the members of a view that was made by members_in() up to date. The cost depends on the number of changes; a
/// member is found by bisection. Returns whether the view has changed.
bool apply_changes(group_view& view, group_names names, const std::vector<node_delta>& changes,
                   const std::string& directory);

}  // namespace zkasio::membership_detail
