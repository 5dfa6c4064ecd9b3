#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zkasio::detail {

/// The code point at `i`, which is advanced behind it; -1 for what is no UTF-8 (overlong forms included).
inline std::int32_t next_code_point(std::string_view s, std::size_t& i) noexcept {
    const auto byte = [&](std::size_t at) -> std::int32_t {
        return at < s.size() ? static_cast<unsigned char>(s[at]) : -1;
    };
    const std::int32_t lead = byte(i++);
    if (lead < 0x80) return lead;
    const int more = lead >= 0xf0 && lead <= 0xf4 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc2 ? 1 : 0;
    if (more == 0 || lead > 0xf4) return -1;
    std::int32_t c = lead & (0x3f >> more);
    for (int k = 0; k < more; ++k) {
        const std::int32_t next = byte(i++);
        if (next < 0x80 || next > 0xbf) return -1;
        c = (c << 6) | (next & 0x3f);
    }
    const bool overlong = (more == 2 && c < 0x800) || (more == 3 && c < 0x10000);
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return overlong || surrogate || c > 0x10ffff ? -1 : c;
}

}  // namespace zkasio::detail
