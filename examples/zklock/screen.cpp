#include "screen.hpp"

#include "terminal.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

namespace zklock {
namespace {

// East Asian wide characters and pictographs, roughly: a line that is cut too early does no harm.
constexpr std::array<std::pair<char32_t, char32_t>, 9> wide{{{0x1100, 0x115f},
                                                             {0x231a, 0x231b},
                                                             {0x23e9, 0x23f3},
                                                             {0x2600, 0x27bf},
                                                             {0x2e80, 0xa4cf},
                                                             {0xac00, 0xd7a3},
                                                             {0xf900, 0xfaff},
                                                             {0xfe30, 0xff60},
                                                             {0x1f000, 0x3fffd}}};

bool is_wide(char32_t c) noexcept {
    return std::any_of(wide.begin(), wide.end(), [c](const auto& r) { return r.first <= c && c <= r.second; });
}

// One step of a line: an escape sequence, or a character.
struct step {
    std::size_t bytes = 1, columns = 1;
};

// The line is valid UTF-8, as printable() makes it.
step step_at(std::string_view line) noexcept {
    const auto first = static_cast<unsigned char>(line.front());
    if (first == 0x1b) {
        const auto end = line.find('m');
        return {end == std::string_view::npos ? line.size() : end + 1, 0};
    }
    const std::size_t bytes = first < 0x80 ? 1U : first < 0xe0 ? 2U : first < 0xf0 ? 3U : 4U;
    char32_t c = bytes == 1 ? first : first & (0xffU >> (bytes + 1));
    for (std::size_t i = 1; i < std::min(bytes, line.size()); ++i)
        c = c << 6 | (static_cast<unsigned char>(line[i]) & 0x3fU);
    return {std::min(bytes, line.size()), is_wide(c) ? 2U : 1U};
}

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const auto end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

}  // namespace

bool output_is_screen() noexcept {
    const char* const kind = std::getenv("TERM");
    return output_is_terminal() && kind && *kind && std::string_view(kind) != "dumb";
}

screen_size size_of_screen() noexcept {
    winsize now{};
    screen_size size;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) != 0) return size;
    if (now.ws_row > 0) size.rows = now.ws_row;
    if (now.ws_col > 0) size.columns = now.ws_col;
    return size;
}

std::size_t columns_of(std::string_view line) noexcept {
    std::size_t columns = 0;
    while (!line.empty()) {
        const step next = step_at(line);
        columns += next.columns;
        line.remove_prefix(next.bytes);
    }
    return columns;
}

std::string cut_to_width(std::string_view line, std::size_t columns) {
    std::string fits;
    std::size_t used = 0;
    bool cut = false;
    while (!line.empty()) {
        const step next = step_at(line);
        cut = cut || used + next.columns > columns;
        // Behind the cut, escape sequences go on: they end the colours that have begun.
        if (!cut || next.columns == 0) fits += line.substr(0, next.bytes);
        if (!cut) used += next.columns;
        line.remove_prefix(next.bytes);
    }
    return fits;
}

// In the last column a terminal may already stand on the next line: it stays empty.
std::string drawn(std::string_view text, std::string_view footer, screen_size size) {
    std::vector<std::string_view> lines = split_lines(text);
    const std::size_t room = std::max<std::size_t>(size.rows, 2) - 1;
    const std::size_t width = std::max<std::size_t>(size.columns, 2) - 1;
    std::string left_out;
    if (lines.size() > room) {
        left_out = "... " + std::to_string(lines.size() - room + 1) + " more lines, for a larger window";
        lines.resize(room);
        lines.back() = left_out;
    }
    std::string all = "\x1b[H";
    for (const std::string_view line : lines) all += cut_to_width(line, width) + "\x1b[K\n";
    return all + "\x1b[J" + cut_to_width(footer, width) + "\r";
}

}  // namespace zklock
