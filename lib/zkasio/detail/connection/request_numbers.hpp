#pragma once

#include <cstdint>
#include <optional>

struct _zhandle;

namespace zkasio::detail {

/// The numbers that the C library gives to requests: one sequence of 32 bits for all handles of a process, which begins
/// at the time of day. About 2.5 thousand million requests later the numbers meet those that the protocol has reserved
/// (-1, -2, -4, -8), and that of our goodbye: a request with one of them would be taken for a ping, say.
///
/// The library shows no number, and other users of the library count on, too. So once in a while a throw-away handle
/// sends a request to this process, which tells its number; and shortly before the reserved numbers, requests that the
/// library refuses use the numbers up. Behind the last one the library begins again at the time of day.
///
/// Only called within a library_call: what is known is one for the process, as the numbers are, see c_conversions.hpp.
///
/// @param zh any handle that is connected. Costs nothing but a decrement in nearly all calls.
void step_over_reserved_numbers(_zhandle* zh) noexcept;

/// The lowest number that no request may have.
inline constexpr std::int32_t first_reserved_number = -128;

/// How many requests, the next one included, may follow before one gets a reserved number. 0: `next` is one.
constexpr std::int64_t requests_before_reserved(std::int32_t next) noexcept {
    if (next >= first_reserved_number && next < 0) return 0;
    const std::int64_t until = std::int64_t{first_reserved_number} - next;
    return until > 0 ? until : until + (std::int64_t{1} << 32);
}

/// The number that the next request of this process gets. Uses up one number. Nothing: it cannot be found out.
std::optional<std::int32_t> look_at_next_number() noexcept;

}  // namespace zkasio::detail
