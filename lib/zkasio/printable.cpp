#include <zkasio/printable.hpp>

#include <cstddef>

namespace zkasio {

std::string printable(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    const auto byte = [text](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    };
    const auto show = [&](unsigned u) {
        out += "\\x";
        out += hex[u >> 4];
        out += hex[u & 15];
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const unsigned u = byte(i), next = byte(i + 1);
        if (u < 0x20 || u == 0x7f) {
            show(u);
        } else if (u == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F, which terminals obey, too
            show(u);
            show(next);
            ++i;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace zkasio
