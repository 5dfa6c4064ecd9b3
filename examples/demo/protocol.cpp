#include "protocol.hpp"

#include <fmt/format.h>

#include <charconv>

namespace demo {

std::string to_text(const acquisition& a) { return fmt::format("{} {} {}", a.token, a.position, a.waited.count()); }

std::optional<acquisition> to_acquisition(std::string_view text) {
    acquisition a;
    std::int64_t waited = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto next = [&](auto& value) {
        while (at != end && *at == ' ') ++at;
        const auto [rest, failed] = std::from_chars(at, end, value);
        at = rest;
        return failed == std::errc();
    };
    if (!next(a.token) || !next(a.position) || !next(waited)) return std::nullopt;
    a.waited = std::chrono::microseconds(waited);
    return a;
}

message to_message(std::string_view line) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return {std::string(line), {}};
    return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

std::int64_t to_number(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}  // namespace demo
