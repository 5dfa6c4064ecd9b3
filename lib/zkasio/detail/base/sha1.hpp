#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zkasio::detail {

/// SHA-1 (FIPS 180-4), only because ZooKeeper's digest ACLs are defined with it: nothing here relies on its strength.
std::array<std::uint8_t, 20> sha1(std::string_view message);

/// Base64 with padding (RFC 4648).
std::string base64(std::span<const std::uint8_t> data);

}  // namespace zkasio::detail
