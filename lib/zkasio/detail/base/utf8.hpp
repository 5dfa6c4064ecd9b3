#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zkasio::detail {

/// The code point at `i`, which is advanced behind it; -1 for what is no UTF-8 (overlong forms included).
std::int32_t next_code_point(std::string_view s, std::size_t& i) noexcept;

}  // namespace zkasio::detail
