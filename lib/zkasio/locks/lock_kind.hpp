#pragma once

#include <zkasio/export.hpp>

#include <cstdint>
#include <string_view>

namespace zkasio {

/// How a contender wants a lock: alone, or together with others that share it.
enum class lock_kind : std::uint8_t { exclusive, shared };

ZKASIO_EXPORT std::string_view to_string(lock_kind k) noexcept;

}  // namespace zkasio
