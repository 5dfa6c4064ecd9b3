#include <zkasio/queues/detail/item_layout.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <tuple>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr int usual_priority = 100;
constexpr std::size_t longest_id = 512;
constexpr std::size_t time_digits = 13;  // enough for 140 000 years of milliseconds

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_capital_hex_digit(char c) noexcept { return is_digit(c) || (c >= 'A' && c <= 'F'); }

std::optional<server_time> parse_time(std::string_view hex) noexcept {
    std::int64_t ms = 0;
    const auto [last, failed] = std::from_chars(hex.data(), hex.data() + hex.size(), ms, 16);
    if (failed != std::errc() || last != hex.data() + hex.size() || hex.front() == '-') return std::nullopt;
    return server_time(std::chrono::milliseconds(ms));
}

template <class... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
    char text[40];
    std::snprintf(text, sizeof text, format, numbers...);
    return text;
}

unsigned long long ms_since_1970(server_time t) noexcept {
    return static_cast<unsigned long long>(std::max<std::int64_t>(0, t.time_since_epoch().count()));
}

// The text between two '|'; empty if `text` does not begin and end with one, or has more of them.
std::string_view between_bars(std::string_view text) noexcept {
    if (text.size() < 3 || text.front() != '|' || text.back() != '|') return {};
    const std::string_view inner = text.substr(1, text.size() - 2);
    return inner.find('|') == std::string_view::npos ? inner : std::string_view();
}

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_argument, "put", {}, why); }

}  // namespace

// The beginning of all names.
std::string_view item_names::marker() const noexcept {
    switch (kind_) {
        case queue_kind::kazoo_locking:
        case queue_kind::kazoo: return "entry-";
        case queue_kind::curator_simple: return "qn-";
        default: return "queue-";
    }
}

// The end of all prefixes, by which a number that begins with '-' is recognised.
std::string_view item_names::before_number() const noexcept {
    switch (kind_) {
        case queue_kind::kazoo_locking:
        case queue_kind::kazoo: return "-";
        case queue_kind::curator_delay:
        case queue_kind::curator_id: return "|";
        case queue_kind::curator_priority: return {};
        default: return marker();
    }
}

// Whether the text between the marker and the number of a name is one that the layout writes.
bool item_names::is_valid_middle(std::string_view text) const noexcept {
    switch (kind_) {
        case queue_kind::kazoo_locking:
        case queue_kind::kazoo:  // "{:03d}-"
            return text.size() >= 4 && text.back() == '-' && std::all_of(text.begin(), text.end() - 1, is_digit);
        case queue_kind::curator_priority:  // "%s%08X", and "1" in front unless the priority is negative
            return text.size() == 9 && (text[0] == '0' || text[0] == '1') &&
                   std::all_of(text.begin(), text.end(), is_capital_hex_digit);
        case queue_kind::curator_delay: {
            const std::string_view time = between_bars(text);
            return !time.empty() && parse_time(time);
        }
        case queue_kind::curator_id: return !between_bars(text).empty();
        default: return text.empty();
    }
}

// Whether names may lack the time or the priority: if a consumer of Curator fails, Curator puts its item again,
// and names it as an item of DistributedQueue.
bool item_names::may_be_plain() const noexcept {
    return kind_ == queue_kind::curator_priority || kind_ == queue_kind::curator_delay;
}

bool item_names::has_text_order() const noexcept {
    return kind_ == queue_kind::kazoo_locking || kind_ == queue_kind::kazoo || kind_ == queue_kind::curator_priority;
}

void item_names::require(const put_options& how) const {
    const bool is_kazoo = kind_ == queue_kind::kazoo_locking || kind_ == queue_kind::kazoo;
    if (how.priority() && !has_text_order()) refuse("the items of this queue's layout have no priority");
    if (is_kazoo && how.priority() && (*how.priority() < 0 || *how.priority() > 999))
        refuse("a priority is a number from 0 to 999");
    const bool needs_id = kind_ == queue_kind::curator_id;
    if (needs_id && (!how.id() || how.id()->empty())) refuse("an item of this queue's layout has an id");
    if (needs_id && how.id()->size() > longest_id) refuse("an id has at most " + std::to_string(longest_id) + " bytes");
    if (!needs_id && how.id()) refuse("the items of this queue's layout have no id");
}

std::string item_names::prefix(const put_options& how, server_time due) const {
    require(how);
    const std::string begin(marker());
    const int priority = how.priority().value_or(usual_priority);
    switch (kind_) {
        case queue_kind::kazoo_locking:
        case queue_kind::kazoo: return begin + formatted("%03d-", priority);
        case queue_kind::curator_priority:
            return begin + formatted("%c%08X", priority >= 0 ? '1' : '0', static_cast<unsigned>(priority));
        case queue_kind::curator_delay: return begin + formatted("|%08llX|", ms_since_1970(due));
        case queue_kind::curator_id: {
            std::string id = *how.id();
            std::replace(id.begin(), id.end(), '/', '_');
            std::replace(id.begin(), id.end(), '|', '_');
            return begin + "|" + id + "|";
        }
        default: return begin;
    }
}

std::string_view item_names::prefix_of(std::string_view name) const noexcept {
    if (may_be_plain()) {
        const std::optional<sequence_suffix> plain = sequence_behind(name, marker());
        if (plain && name.size() == marker().size() + plain->digits.size()) return name.substr(0, marker().size());
    }
    const std::optional<sequence_suffix> number = sequence_behind(name, before_number());
    if (!number || !name.starts_with(marker())) return {};
    const std::string_view prefix = name.substr(0, name.size() - number->digits.size());
    if (prefix.size() < marker().size()) return {};
    return is_valid_middle(prefix.substr(marker().size())) ? prefix : std::string_view();
}

server_time item_names::due(std::string_view name) const noexcept {
    const std::string_view prefix = tell_times() ? prefix_of(name) : std::string_view();
    if (prefix.empty()) return server_time();
    return parse_time(between_bars(prefix.substr(marker().size()))).value_or(server_time());
}

std::vector<std::string> item_names::in_order(std::vector<std::string> children, std::string_view directory) const {
    struct place {
        server_time due;
        std::size_t prefix;   // its length, if its text is of importance
        std::int32_t number;  // relative to the first child: ordered as an integer, wherever sequences wrap around
        std::string name;
        std::tuple<server_time, std::string_view, std::int32_t> rank() const noexcept {
            return {due, std::string_view(name).substr(0, prefix), number};
        }
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
        const std::size_t length = has_text_order() ? prefix.size() : 0;
        places.push_back({due(name), length, static_cast<std::int32_t>(number - base), std::move(name)});
    }
    std::sort(places.begin(), places.end(), [](const place& a, const place& b) { return a.rank() < b.rank(); });
    std::vector<std::string> names;
    names.reserve(places.size());
    for (place& p : places) names.push_back(std::move(p.name));
    return names;
}

std::string item_names::later_prefix(server_time due, const put_options& how) const {
    return formatted("%013llx-", ms_since_1970(due)) + prefix(how).substr(marker().size());
}

std::optional<later_item> item_names::parse_later(std::string name) const {
    if (name.size() <= time_digits || name[time_digits] != '-') return std::nullopt;
    const std::optional<server_time> due = parse_time(std::string_view(name).substr(0, time_digits));
    const std::string item = std::string(marker()) + name.substr(time_digits + 1);
    const std::string_view prefix = prefix_of(item);
    if (!due || prefix.empty()) return std::nullopt;
    return later_item{*due, std::move(name), std::string(prefix)};
}

std::string_view item_names::prefix_of_dead(std::string_view name) const noexcept {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || name.find('/') != std::string_view::npos) return {};
    const std::string_view czxid = name.substr(dot + 1);
    const auto is_hex_digit = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
    if (czxid.empty() || !std::all_of(czxid.begin(), czxid.end(), is_hex_digit)) return {};
    return prefix_of(name.substr(0, dot));
}

std::string dead_name(std::string_view name, std::int64_t czxid) {
    return std::string(name) + formatted(".%llx", static_cast<unsigned long long>(czxid));
}

namespace {

constexpr std::string_view version("\x00\x01\x00\x01", 4);
constexpr char value_follows = 1, end_of_values = 2;
constexpr std::size_t header_size = 5;  // of a value

// Calls `f` with each value. False: the frame is broken.
template <class F>
bool for_each_value(std::string_view data, F f) {
    if (!data.starts_with(version)) return false;
    data.remove_prefix(version.size());
    while (data.size() >= header_size && data.front() == value_follows) {
        std::uint32_t size = 0;
        for (std::size_t i = 1; i < header_size; ++i) size = size << 8 | static_cast<unsigned char>(data[i]);
        data.remove_prefix(header_size);
        if (size > data.size()) return false;
        f(data.substr(0, size));
        data.remove_prefix(size);
    }
    return data.size() == 1 && data.front() == end_of_values;
}

}  // namespace

std::string item_payload::pack(std::string value) const {
    if (!is_framed_) return value;
    std::string data(version);
    data.reserve(version.size() + header_size + value.size() + 1);
    data += value_follows;
    for (int shift = 24; shift >= 0; shift -= 8) data += static_cast<char>(value.size() >> shift & 0xff);
    data += value;
    data += end_of_values;
    return data;
}

std::optional<std::vector<std::string>> item_payload::unpack(std::string_view data) const {
    std::vector<std::string> values;
    if (!is_framed_)
        values.emplace_back(data);
    else if (!for_each_value(data, [&](std::string_view value) { values.emplace_back(value); }))
        return std::nullopt;
    return values;
}

std::string item_payload::value_or_all(std::string data) const {
    if (!is_framed_ || count(data) != 1u) return data;
    return data.substr(version.size() + header_size, data.size() - version.size() - header_size - 1);
}

std::optional<std::size_t> item_payload::count(std::string_view data) noexcept {
    std::size_t n = 0;
    if (!for_each_value(data, [&](std::string_view) { ++n; })) return std::nullopt;
    return n;
}

}  // namespace zkasio::queue_detail
