#pragma once

#include <cstdint>

namespace zkasio {

/// What an attempt to acquire a lock does when somebody else has it, or stands before us in its queue.
enum class if_contended : std::uint8_t {
    wait,
    give_up
};

}  // namespace zkasio
