#include <zkasio/queues/detail/item_names.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/sequence_suffix.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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

}  // namespace zkasio::queue_detail
