#include <zkasio/counters/counter_formats.hpp>

#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace zkasio {
namespace {

template <class Number>
Number from_bytes(std::string_view bytes) {
    if (bytes.empty()) return 0;
    if (bytes.size() != sizeof(Number))
        throw std::invalid_argument(std::to_string(bytes.size()) + " bytes are no number of " +
                                    std::to_string(sizeof(Number)) + " bytes");
    std::make_unsigned_t<Number> n = 0;
    for (const char byte : bytes)
        n = static_cast<std::make_unsigned_t<Number>>(n << 8 | static_cast<unsigned char>(byte));
    return static_cast<Number>(n);
}

template <class Number>
std::string to_bytes(Number number) {
    auto n = static_cast<std::make_unsigned_t<Number>>(number);
    std::string bytes(sizeof(Number), '\0');
    for (std::size_t i = sizeof(Number); i-- > 0; n = static_cast<std::make_unsigned_t<Number>>(n >> 8))
        bytes[i] = static_cast<char>(n & 0xff);
    return bytes;
}

std::int64_t from_digits(std::string_view text) {
    if (text.empty()) return 0;
    std::int64_t n = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (failed != std::errc() && end != text.data()) throw std::invalid_argument("the number has more than 64 bits");
    if (failed != std::errc() || end != text.data() + text.size())
        throw std::invalid_argument("the text is no integer");
    return n;
}

std::string to_digits(std::int64_t n) { return std::to_string(n); }

}  // namespace

config_format<std::int32_t> curator_count() { return {&from_bytes<std::int32_t>, &to_bytes<std::int32_t>}; }
config_format<std::int64_t> curator_long() { return {&from_bytes<std::int64_t>, &to_bytes<std::int64_t>}; }
config_format<std::int64_t> kazoo_counter() { return {&from_digits, &to_digits}; }

}  // namespace zkasio
