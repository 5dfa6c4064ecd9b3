#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace zkasio::detail {

/// The number of a view of a client, see client::rooted(). 0: the client itself.
using view_id = std::uint32_t;

/// The nodes below which the views of a client are. They stay as long as the client, so that a handle, of which there
/// may be very many, has a number and not a string. From any thread.
class view_roots {
public:
    /// @param root a valid path other than "/", as the client itself has it.
    view_id add(std::string root);
    /// "" of the client itself.
    const std::string& root_of(view_id view) const;

    /// A path of the view, as the client itself has it.
    std::string whole(view_id view, std::string path) const;
    /// A path as the client itself has it, as the view has it. A path that is not below the view's root stays whole.
    std::string shown(view_id view, std::string path) const;

private:
    mutable std::mutex mutex_;
    std::deque<std::string> roots_;  // guarded by the mutex; none of them moves, and none changes
};

}  // namespace zkasio::detail
