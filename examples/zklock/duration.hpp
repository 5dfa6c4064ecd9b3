#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace zklock {

/// "30s", "1m30s", "500ms", "2h", "1d"; a number alone is seconds, "1.5" and ".5" too. Nothing for what is no duration,
/// negative ones and those above ten years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// For people: "350 ms", "12 s", "3 min", "5 h", "12 d".
std::string to_text(std::chrono::milliseconds d);

}  // namespace zklock
