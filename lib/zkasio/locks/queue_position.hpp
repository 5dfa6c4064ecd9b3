#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace zkasio {

/// The position of a waiting contender in the queue of a lock.
struct queue_position {
    std::size_t ahead = 0;    ///< contenders ahead, at the last look; contenders that gave up since are included
    std::string predecessor;  ///< path of the node of the nearest contender ahead; empty: none is ahead
    friend bool operator==(const queue_position&, const queue_position&) = default;
};

/// Called on the client's strand whenever the position has changed, also once at the beginning, and never after the
/// acquire has ended: an acquire that is cancelled on another thread waits for a running observer. May use the client
/// and make other clients; while the observer runs, its client does nothing else. Exceptions are logged.
using position_observer = std::function<void(const queue_position&)>;

}  // namespace zkasio
