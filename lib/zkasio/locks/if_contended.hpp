#pragma once

#include <cstdint>

namespace zkasio {

/// The choice of an attempt to acquire a lock when another contender has the lock, or is ahead in its queue.
enum class if_contended : std::uint8_t {
    wait,
    give_up
};

}  // namespace zkasio
