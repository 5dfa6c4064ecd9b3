#pragma once

#include <zkasio/export.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// A member of a group.
struct member_info {
    std::string id;
    std::string data;  ///< none in the parties of kazoo, see has_member_data()
    std::string path;  ///< the member's node

    friend bool operator==(const member_info&, const member_info&) = default;
};

/// The members of a group, as a client knows them.
struct ZKASIO_EXPORT group_view {
    /// Sorted by id. In the parties of kazoo, several members may have the same id.
    std::vector<member_info> members;
    /// False: there is no connection, or not every node was read again since there is one. Then the view is what was
    /// known last.
    bool current = false;
    /// False: the directory exists, but its ACL does not let this client list it. Then `members` is empty.
    bool readable = true;

    /// The first member with this id; null when there is none.
    const member_info* find(std::string_view id) const noexcept;
    bool contains(std::string_view id) const noexcept { return find(id) != nullptr; }

    friend bool operator==(const group_view&, const group_view&) = default;
};

}  // namespace zkasio
