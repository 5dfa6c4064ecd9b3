#pragma once

#include <cstdint>
#include <string_view>

/// Hashes that are the same in every process, on every machine and in every version: for decisions that several
/// processes have to make alike, such as which instance serves a key, or which member a partition is assigned to.
namespace zkasio::detail {

/// FNV-1a with 64 bits.
constexpr std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h;
}

/// Spreads each bit of `x` over all bits of the result: the last step of splitmix64.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

}  // namespace zkasio::detail
