#pragma once

#include <atomic>
#include <cstddef>

namespace zkasio::discovery_detail {

/// The number of cache lines for data that all threads write: up to that many threads do not share a line.
inline constexpr std::size_t stripes = 16;
inline constexpr std::size_t cache_line = 64;

/// The index of the stripe that this thread writes to.
inline std::size_t stripe_of_thread() noexcept {
    static std::atomic<std::size_t> threads{0};
    static thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % stripes;
    return mine;
}

}  // namespace zkasio::discovery_detail
