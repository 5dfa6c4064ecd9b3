#pragma once

#include <zkasio/lock_kind.hpp>

#include <compare>
#include <cstdint>

namespace zkasio::lock_detail {

/// The place of a contender of this session in the queue of a lock: keys order as the contenders do.
struct queue_key {
    std::int64_t number = 0;  ///< the sequence number, without its wrap-around
    lock_kind kind = lock_kind::exclusive;
    std::uint32_t id = 0;  ///< distinguishes contenders of this session with the same number
    friend auto operator<=>(const queue_key&, const queue_key&) = default;
};

}  // namespace zkasio::lock_detail
