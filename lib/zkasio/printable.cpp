#include <zkasio/printable.hpp>

#include <zkasio/detail/base/utf8.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace zkasio {

namespace {

void append_escaped(std::string& to, std::string_view bytes) {
    static constexpr char hex[] = "0123456789abcdef";
    for (const char c : bytes) {
        const auto u = static_cast<unsigned char>(c);
        to += "\\x";
        to += hex[u >> 4];
        to += hex[u & 15];
    }
}

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t at = i;
        const std::int32_t c = detail::next_code_point(text, i);
        if (c < 0) i = at + 1;
        const std::string_view bytes = text.substr(at, i - at);
        // Terminals obey U+0080 to U+009F, too, and some of them single bytes of that range.
        if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            append_escaped(out, bytes);
        else
            out += bytes;
    }
    return out;
}

std::string session_id_text(std::int64_t id) {
    std::array<char, 16> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<std::uint64_t>(id), 16).ptr;
    return "0x" + std::string(digits.data(), end);
}

}  // namespace zkasio
