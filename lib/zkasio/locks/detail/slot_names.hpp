#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The names of the nodes of `slots`. Pure.
namespace zkasio::lock_detail {

inline constexpr std::string_view slot_clock_name = "clock";

/// The number that a node of this name stands for: without leading zeros, and below `n`. Nothing: it is no number.
std::optional<std::uint32_t> slot_of(std::string_view name, std::uint32_t n) noexcept;
std::string used_name(std::uint32_t slot);

struct free_slot {
    std::uint32_t number = 0;
    bool used_before = false;  ///< has a node used_name()
};
/// The free numbers, the lowest first. @param children of the directory.
std::vector<free_slot> free_slots(const std::vector<std::string>& children, std::uint32_t n);

/// The order in which an acquire tries the free numbers: the lowest first; after refusals, from one at random on among
/// the lowest 4, 16, 64 ... So of n clients that start together each is refused about log n times, and not n times.
/// @param refusals how often another client was faster. @param random any number.
void spread(std::vector<free_slot>& free, unsigned refusals, std::uint64_t random);

}  // namespace zkasio::lock_detail
