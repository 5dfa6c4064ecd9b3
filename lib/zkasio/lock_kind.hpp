#pragma once

#include <cstdint>
#include <string_view>

namespace zkasio {

/// How a contender wants a lock: alone, or shared with other contenders.
enum class lock_kind : std::uint8_t { exclusive, shared };

constexpr std::string_view to_string(lock_kind k) noexcept {
    return k == lock_kind::exclusive ? "exclusive" : "shared";
}

}  // namespace zkasio
