#pragma once

#include <zkasio/locks/queue_position.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace zkasio::lock_detail {

/// The user's position_observer of one acquire, and the position that it was told last.
struct observation {
    explicit observation(position_observer f) : tell(std::move(f)) {}
    /// The acquire has ended: objects that `tell` refers to may be gone. From any thread; waits while `tell` runs on
    /// another one.
    void end() {
        const std::lock_guard lock(telling);
        over = true;
    }
    position_observer tell;
    std::optional<queue_position> told{};
    // Held while `tell` runs: an acquire that is cancelled on another thread does not end before `tell` has returned.
    // Recursive, since `tell` may cancel its own acquire.
    std::recursive_mutex telling;
    bool over = false;  // guarded by `telling`
};

}  // namespace zkasio::lock_detail
