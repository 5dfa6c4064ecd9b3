#pragma once

#include <cstdint>

namespace zkasio::lock_detail {

/// What an acquire does when somebody else has the lock, or stands before it in the queue.
enum class if_contended : std::uint8_t {
    wait,
    give_up
};

}  // namespace zkasio::lock_detail
