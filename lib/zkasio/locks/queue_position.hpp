#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace zkasio {

/// Where somebody stands who waits for a lock.
struct queue_position {
    std::size_t ahead = 0;    ///< contenders in front, as of the last look: those who gave up since still count
    std::string predecessor;  ///< path of the node of the nearest of them; empty: nobody is
    friend bool operator==(const queue_position&, const queue_position&) = default;
};

/// Called on the client's strand whenever that has changed, also once at the beginning, and not any more once the
/// acquire has ended: one that is cancelled on another thread meanwhile waits for it. May use the client and make
/// others; while it runs, its client does nothing else. What it throws is logged.
using position_observer = std::function<void(const queue_position&)>;

}  // namespace zkasio
