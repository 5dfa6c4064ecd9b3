#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the fuzzers share. A fuzzer is a function of a text that checks what has to hold of every text: that what is
/// printed is read again, that what is accepted is valid, that only documented exceptions are thrown.
namespace zkasio::fuzz {

/// Ends the process if `holds` is false: libFuzzer then keeps the input.
inline void require(bool holds, const char* what, std::string_view about = {}) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s: \"%.*s\"\n", what, static_cast<int>(about.size()), about.data());
    std::abort();
}

/// Whether the call throws an exception for which `is_documented(e)` is true; other exceptions end the process.
template <class Exception, class Call>
bool refuses(Call call) {
    try {
        call();
    } catch (const Exception&) {
        return true;
    }
    return false;
}

/// The text up to the next end of line, which is taken from `rest`.
inline std::string_view take_line(std::string_view& rest) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return line;
}

inline std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) lines.emplace_back(take_line(text));
    return lines;
}

/// A number that the text decides: its first bytes.
inline std::uint64_t number_of(std::string_view text) {
    std::uint64_t n = 0;
    for (const char c : text.substr(0, sizeof n)) n = n << 8 | static_cast<unsigned char>(c);
    return n;
}

inline std::string_view view(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// A sequence number as servers write it.
inline std::string sequence_text(std::int32_t number) {
    char text[16];
    std::snprintf(text, sizeof text, "%010d", number);
    return text;
}

}  // namespace zkasio::fuzz
