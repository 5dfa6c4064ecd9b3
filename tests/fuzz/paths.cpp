// Paths of nodes, against a second reading of the rules; and texts of others, made printable.
#include "fuzz/fuzz.hpp"

#include <zkasio/detail/base/utf8.hpp>
#include <zkasio/detail/requests/validate.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>

#include <optional>

namespace {

using namespace zkasio::fuzz;

// By the bits of the standard, not by a table; nothing if the text is no UTF-8.
std::optional<std::u32string> decoded(std::string_view text) {
    std::u32string all;
    for (std::size_t i = 0; i < text.size();) {
        const auto at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
        const unsigned char first = at(i++);
        std::size_t more = 0;
        char32_t c = first;
        if (first >= 0x80) {
            more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
            if (first < 0xc0 || first > 0xf7) return std::nullopt;
            c = first & (0x3fU >> more);
        }
        for (std::size_t k = 0; k < more; ++k, ++i) {
            if (i == text.size() || (at(i) & 0xc0) != 0x80) return std::nullopt;
            c = c << 6 | (at(i) & 0x3fU);
        }
        constexpr char32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return std::nullopt;
        all += c;
    }
    return all;
}

// ZooKeeper's PathUtils.validatePath().
bool is_path(std::string_view text) {
    const auto all = decoded(text);
    if (!all || all->empty() || all->front() != U'/') return false;
    if (all->size() == 1) return true;
    std::u32string part;
    for (std::size_t i = 1; i <= all->size(); ++i) {
        const char32_t c = i < all->size() ? (*all)[i] : U'/';
        if (c != U'/') {
            const bool refused = c <= 0x1f || (c >= 0x7f && c <= 0x9f) || (c >= 0xe000 && c <= 0xf8ff) || c >= 0xfff0;
            if (refused) return false;
            part += c;
            continue;
        }
        if (part.empty() || part == U"." || part == U"..") return false;
        part.clear();
    }
    return true;
}

void check_printable(std::string_view text) {
    const std::string shown = zkasio::printable(text);
    const auto all = decoded(shown);
    require(all.has_value(), "what is shown is UTF-8", text);
    for (const char32_t c : *all)
        require(c >= 0x20 && (c < 0x7f || c >= 0xa0), "what is shown controls no terminal", text);
    require(zkasio::printable(shown) == shown, "what is shown stays", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = view(data, size);
    check_printable(text);

    const std::string problem = zkasio::path_problem(text);
    require(problem.empty() == is_path(text), "what is accepted is a path, and the other way round", text);
    const auto code_of = [&](auto call) -> std::error_code {
        try {
            call();
        } catch (const zkasio::error& e) {
            return e.code();
        }
        return {};
    };
    const bool refused = code_of([&] { zkasio::require_path("get", text); }) == zkasio::errc::invalid_path;
    require(refused == !problem.empty(), "require_path() agrees", text);
    const std::error_code request_refused =
        code_of([&] { zkasio::detail::validate(zkasio::detail::get_request{std::string(text)}, 0); });
    require((request_refused == zkasio::errc::invalid_path) == refused, "a request is refused alike", text);
    if (!problem.empty()) return 0;

    const std::string_view parent = zkasio::parent_path(text), name = zkasio::node_name(text);
    require((text == "/") == parent.empty(), "only the root has no parent", text);
    if (text == "/") return 0;
    require(zkasio::path_problem(parent).empty(), "the parent's path is one", text);
    require(!name.empty() && name.find('/') == std::string_view::npos, "a name is one part", text);
    require(zkasio::join_path(parent, name) == text, "parent and name are the path", text);
    const std::string below = zkasio::join_path(text, "x");
    require(zkasio::path_problem(below).empty() && zkasio::parent_path(below) == text, "a path has children", text);
    return 0;
}
