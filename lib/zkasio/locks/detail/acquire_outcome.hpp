#pragma once

#include <cstdint>

namespace zkasio::lock_detail {

/// What has become of an acquire.
enum class acquire_outcome : std::uint8_t {
    undecided,
    granted,
    refused,    ///< somebody else has the lock, and the acquire was not to wait; or nobody wants to know any more
    displaced,  ///< the node was deleted while it waited, see acquire_request::lost
    failed,     ///< with contender::failed
};

}  // namespace zkasio::lock_detail
