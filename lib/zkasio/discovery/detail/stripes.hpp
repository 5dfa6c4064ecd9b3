#pragma once

#include <atomic>
#include <cstddef>

namespace zkasio::discovery_detail {

/// How many cache lines what all threads write is spread over: threads up to that number do not share one.
inline constexpr std::size_t stripes = 16;
inline constexpr std::size_t cache_line = 64;

/// Which of them this thread writes to.
inline std::size_t stripe_of_thread() noexcept {
    static std::atomic<std::size_t> threads{0};
    static thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % stripes;
    return mine;
}

}  // namespace zkasio::discovery_detail
