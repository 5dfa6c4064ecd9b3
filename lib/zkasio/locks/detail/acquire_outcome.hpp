#pragma once

#include <cstdint>

namespace zkasio::lock_detail {

/// The outcome of an acquire.
enum class acquire_outcome : std::uint8_t {
    undecided,
    granted,
    refused,    ///< the lock was not free and the acquire was not to wait; or the acquire was given up
    displaced,  ///< the node of a waiting contender was deleted, see acquire_request::lost
    failed,     ///< with contender::failed
};

}  // namespace zkasio::lock_detail
