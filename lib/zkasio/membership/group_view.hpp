#pragma once

#include <zkasio/export.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// Somebody who is in a group.
struct member_info {
    std::string id;
    std::string data;  ///< none in the parties of kazoo
    std::string path;  ///< of the member's node

    friend bool operator==(const member_info&, const member_info&) = default;
};

/// Who is in a group, as a client knows it.
struct ZKASIO_EXPORT group_view {
    /// By id. In the parties of kazoo several may have the same.
    std::vector<member_info> members;
    /// False: there is no connection, or not everything was looked at again since there is one. Then this is what was
    /// known last.
    bool current = false;
    /// False: there is a directory, and its ACL keeps the names of the members from us. Then there are none here.
    bool readable = true;

    /// The first with this id; null when there is none.
    const member_info* find(std::string_view id) const noexcept;
    bool contains(std::string_view id) const noexcept { return find(id) != nullptr; }

    friend bool operator==(const group_view&, const group_view&) = default;
};

}  // namespace zkasio
