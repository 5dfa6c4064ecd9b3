#include <zkasio/recipe/sequence_suffix.hpp>

#include <charconv>
#include <cstddef>
#include <system_error>

namespace zkasio {

// Servers write the number as %010d: ten characters, or eleven if the number is below -999999999. The search starts at
// the end of the name, since a marker may consist of digits or '-', too.
std::optional<sequence_suffix> sequence_behind(std::string_view name, std::string_view marker) noexcept {
    for (const std::size_t length : {std::size_t{11}, std::size_t{10}}) {
        if (name.size() < length) continue;
        const std::string_view digits = name.substr(name.size() - length);
        if (length == 11 && digits.front() != '-') continue;
        if (!name.substr(0, name.size() - length).ends_with(marker)) continue;
        std::int32_t value = 0;
        const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (ec != std::errc() || end != digits.data() + digits.size()) continue;
        if (length == 11 && value >= -999'999'999) continue;  // the '-' is the marker's
        if (digits.front() == '-' && value == 0) continue;    // no server writes that
        return sequence_suffix{digits, value};
    }
    return std::nullopt;
}

}  // namespace zkasio
