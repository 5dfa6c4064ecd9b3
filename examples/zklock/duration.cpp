#include "duration.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace zklock {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 6> units{
    {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}, {"", 1'000}}};

// "1.5", "1", and ".5" as flock's manual writes it.
bool begins_number(std::string_view text) {
    if (text.front() == '.') text.remove_prefix(1);
    return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

// The unit that `text` begins with; "ms" before "m".
const std::pair<std::string_view, double>* unit_at(std::string_view text) {
    for (const auto& unit : units)
        if (!unit.first.empty() && text.substr(0, unit.first.size()) == unit.first) return &unit;
    return text.empty() ? &units.back() : nullptr;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
    constexpr double ten_years = 10 * 366 * 86'400'000.0;
    if (text.empty()) return std::nullopt;
    double sum = 0;
    while (!text.empty()) {
        if (!begins_number(text)) return std::nullopt;  // no sign, no "inf", no "nan"
        double number = 0;
        const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (failed != std::errc()) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        const auto* const unit = unit_at(text);
        if (!unit) return std::nullopt;
        text.remove_prefix(unit->first.size());
        sum += number * unit->second;
        if (!(sum <= ten_years)) return std::nullopt;
    }
    return std::chrono::milliseconds(std::llround(sum));
}

std::string to_text(std::chrono::milliseconds d) {
    const auto ms = d.count();
    if (ms < 10'000 && ms % 1'000 != 0) return std::to_string(ms) + " ms";
    if (ms < 120'000) return std::to_string(ms / 1'000) + " s";
    if (ms < 7'200'000) return std::to_string(ms / 60'000) + " min";
    if (ms < 2 * 86'400'000LL) return std::to_string(ms / 3'600'000) + " h";
    return std::to_string(ms / 86'400'000) + " d";
}

}  // namespace zklock
