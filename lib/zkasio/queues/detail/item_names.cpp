#include <zkasio/queues/detail/item_names.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/sequence_suffix.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::string_view item_marker = "entry-";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// kazoo writes a priority as {:03d}.
bool is_priority(std::string_view text) noexcept {
    return text.size() >= 3 && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

std::string item_prefix(int priority) {
    const std::string digits = std::to_string(priority);
    return std::string(item_marker) + std::string(3 - std::min<std::size_t>(3, digits.size()), '0') + digits + '-';
}

std::string_view prefix_of(std::string_view name) noexcept {
    const std::optional<sequence_suffix> number = sequence_behind(name, "-");
    if (!number || !name.starts_with(item_marker)) return {};
    const std::string_view prefix = name.substr(0, name.size() - number->digits.size());
    if (prefix.size() <= item_marker.size()) return {};
    const std::string_view priority = prefix.substr(item_marker.size(), prefix.size() - item_marker.size() - 1);
    return is_priority(priority) ? prefix : std::string_view();
}

std::vector<std::string> in_order(std::vector<std::string> children, std::string_view directory) {
    struct place {
        std::size_t prefix;   // its length
        std::int32_t number;  // relative to the first child: ordered as an integer, wherever sequences wrap around
        std::string name;
        std::string_view priority() const noexcept { return std::string_view(name).substr(0, prefix); }
    };
    std::vector<place> places;
    places.reserve(children.size());
    std::uint32_t base = 0;
    for (std::string& name : children) {
        const std::string_view prefix = prefix_of(name);
        if (prefix.empty())
            throw error(errc::foreign_child, "receive", directory,
                        "child \"" + name + "\" is no item of this queue: use a directory of its own");
        const auto number = static_cast<std::uint32_t>(sequence_behind(name, prefix)->number);
        if (places.empty()) base = number;
        const std::size_t length = prefix.size();
        places.push_back({length, static_cast<std::int32_t>(number - base), std::move(name)});
    }
    std::sort(places.begin(), places.end(), [](const place& a, const place& b) {
        const int order = a.priority().compare(b.priority());
        return order != 0 ? order < 0 : a.number < b.number;
    });
    std::vector<std::string> names;
    names.reserve(places.size());
    for (place& p : places) names.push_back(std::move(p.name));
    return names;
}

namespace {

constexpr std::size_t time_digits = 13;  // enough for 140 000 years of milliseconds

}  // namespace

std::string later_prefix(server_time due, int priority) {
    char digits[24];
    const auto n = static_cast<unsigned long long>(std::max<std::int64_t>(0, due.time_since_epoch().count()));
    std::snprintf(digits, sizeof digits, "%013llx-", n);
    return digits + item_prefix(priority).substr(item_marker.size());
}

std::optional<later_item> parse_later(std::string name) {
    if (name.size() <= time_digits || name[time_digits] != '-') return std::nullopt;
    std::int64_t due = 0;
    const char* const end = name.data() + time_digits;
    const auto [last, failed] = std::from_chars(name.data(), end, due, 16);
    if (failed != std::errc() || last != end || due < 0) return std::nullopt;
    const std::string item = std::string(item_marker) + name.substr(time_digits + 1);
    const std::string_view prefix = prefix_of(item);
    if (prefix.empty()) return std::nullopt;
    return later_item{server_time(std::chrono::milliseconds(due)), std::move(name), std::string(prefix)};
}

std::string dead_name(std::string_view name, std::int64_t czxid) {
    char digits[24];
    std::snprintf(digits, sizeof digits, ".%llx", static_cast<unsigned long long>(czxid));
    return std::string(name) + digits;
}

std::string_view prefix_of_dead(std::string_view name) noexcept { return prefix_of(name.substr(0, name.rfind('.'))); }

}  // namespace zkasio::queue_detail
