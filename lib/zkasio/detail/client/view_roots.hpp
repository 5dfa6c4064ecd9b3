#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace zkasio::detail {

/// The number of a view of a client, see client::rooted(). 0: the client itself.
using view_id = std::uint32_t;

/// The nodes below which the views of a client are. They stay as long as the client, so that a handle, of which there
/// may be very many, has a number and not a string. From any thread; all but add() also in a child process, in which
/// another thread of the parent may have had the mutex.
class view_roots {
public:
    /// @param root a valid path other than "/", as the client itself has it.
    view_id add(const std::string& root);
    /// "" of the client itself.
    const std::string& root_of(view_id view) const noexcept;

    /// A path of the view, as the client itself has it.
    std::string whole(view_id view, std::string path) const;
    /// A path as the client itself has it, as the view has it. A path that is not below the view's root stays whole.
    std::string shown(view_id view, std::string path) const;

private:
    std::mutex mutex_;
    std::map<std::string, view_id> known_;                      // guarded by the mutex
    std::array<std::unique_ptr<std::string[]>, 32> allocated_;  // guarded by the mutex
    std::array<std::atomic<const std::string*>, 32> roots_{};   // the same: 1, 2, 4 ... roots, which never move
};

}  // namespace zkasio::detail
