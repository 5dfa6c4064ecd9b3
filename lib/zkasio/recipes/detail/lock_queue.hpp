#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The decisions of the lock algorithm: what a list of children means. No input, no output, no waiting.
namespace zkasio::recipes::detail {

/// The sequence number behind the last `marker` in `name` ("_c_<uuid>-lock-0000000012" with "lock-" is 12).
/// A server appends "%010d" of a signed number: after 2^31 nodes it has a '-'.
std::optional<std::int32_t> sequence_of(std::string_view name, std::string_view marker) noexcept;

/// Whether `a` was created before `b`. Wraps around: right as long as fewer than 2^31 numbers lie between them.
constexpr bool before(std::int32_t a, std::int32_t b) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b)) < 0;
}

struct lock_step {
    enum class kind { owned, wait, gone };
    kind what = kind::gone;
    std::string predecessor;   ///< for wait: the name to watch
    std::size_t position = 0;  ///< contenders ahead
    std::vector<std::string> duplicates;  ///< further nodes with our protection id: to be removed
};

/// What a contender does next. `mine` is the name of its node, `protection_id` what is unique in it.
/// Throws zkasio::error that names the first child which is no contender, and so cannot be ordered.
lock_step next_step(const std::vector<std::string>& children, std::string_view mine, std::string_view protection_id,
                    std::string_view marker, std::string_view directory);

/// The children in the order in which they get the lock.
std::vector<std::string> in_order(std::vector<std::string> children, std::string_view marker, std::string_view directory);

}  // namespace zkasio::recipes::detail
