#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace zkasio::counter_detail {

/// The sum; nothing if 64 bits do not hold it.
constexpr std::optional<std::int64_t> sum_of(std::int64_t a, std::int64_t b) noexcept {
    using limits = std::numeric_limits<std::int64_t>;
    if (b > 0 ? a > limits::max() - b : a < limits::min() - b) return std::nullopt;
    return a + b;
}

}  // namespace zkasio::counter_detail
