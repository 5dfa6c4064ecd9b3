#include <zkasio/path.hpp>

#include <zkasio/detail/base/utf8.hpp>
#include <zkasio/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace zkasio {
namespace {

// Java looks at UTF-16 units: a character above U+FFFF is a pair of surrogates there, and so refused.
bool allowed(std::int32_t c) {
    return !(c <= 0x1f || (c >= 0x7f && c <= 0x9f) || (c >= 0xd800 && c <= 0xf8ff) || c >= 0xfff0);
}

// Whether all characters are printable ASCII, as in most paths. Reads eight at a time, since every request calls this.
bool is_plain(std::string_view s) noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101, tops = 0x80 * ones;
    std::uint64_t odd = 0;  // bit 7 of a byte is set: below 0x20, above 0x7e, or more than ASCII
    while (!s.empty()) {
        std::uint64_t eight = 0x20 * ones;
        const std::size_t n = std::min(s.size(), sizeof eight);
        std::memcpy(&eight, s.data(), n);
        odd |= ((eight - 0x20 * ones) & ~eight) | (eight + ones) | eight;
        s.remove_prefix(n);
    }
    return (odd & tops) == 0;
}

}  // namespace

std::string path_problem(std::string_view path) {
    if (path.empty()) return "the path is empty";
    if (path.front() != '/') return "a path starts with '/'";
    if (path.size() == 1) return {};
    if (path.back() == '/') return "a path does not end with '/'";

    for (std::size_t start = 1; start <= path.size();) {
        const std::size_t end = std::min(path.find('/', start), path.size());
        const std::string_view part = path.substr(start, end - start);
        if (part.empty()) return "empty node name at character " + std::to_string(start);
        if (part == "." || part == "..") return "relative path at character " + std::to_string(start);
        start = end + 1;
    }
    if (is_plain(path)) return {};
    for (std::size_t i = 0; i < path.size();) {
        const std::size_t at = i;
        const std::int32_t c = detail::next_code_point(path, i);
        if (c == 0) return "NUL at character " + std::to_string(at);
        if (c < 0) return "not UTF-8 at byte " + std::to_string(at);
        if (!allowed(c)) return "character not allowed at byte " + std::to_string(at);
    }
    return {};
}

void require_path(std::string_view operation, std::string_view path) {
    if (const std::string problem = path_problem(path); !problem.empty())
        throw error(errc::invalid_path, operation, path, problem);
}

void require_directory(std::string_view operation, std::string_view path) {
    require_path(operation, path);
    if (path == "/") throw error(errc::invalid_path, operation, path, "a directory of its own is needed");
}

bool belongs_to_servers(std::string_view path) noexcept {
    return path == "/zookeeper" || path.starts_with("/zookeeper/");
}

namespace {

// Paths have their last slash far from the end, and rfind() looks at each character.
std::size_t last_slash(std::string_view path) noexcept {
    if (path.empty()) return std::string_view::npos;
    const void* const at = ::memrchr(path.data(), '/', path.size());
    return at ? static_cast<std::size_t>(static_cast<const char*>(at) - path.data()) : std::string_view::npos;
}

}  // namespace

std::string_view parent_path(std::string_view path) noexcept {
    const std::size_t slash = last_slash(path);
    if (slash == std::string_view::npos || path.size() == 1) return {};
    return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string_view node_name(std::string_view path) noexcept {
    const std::size_t slash = last_slash(path);
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string join_path(std::string_view parent, std::string_view name) {
    std::string path;
    path.reserve(parent.size() + 1 + name.size());
    path += parent;
    if (path.empty() || path.back() != '/') path += '/';
    path += name;
    return path;
}

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
