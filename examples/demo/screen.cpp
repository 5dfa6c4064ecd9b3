#include "screen.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace demo {
namespace {

struct extent {
    std::size_t columns = 79, rows = 23;
};

// One less each way: nothing may scroll when the cursor steps behind the last character.
extent terminal_size() {
    winsize size{};
    extent e;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return e;
    if (size.ws_col > 1) e.columns = size.ws_col - 1u;
    if (size.ws_row > 1) e.rows = size.ws_row - 1u;
    return e;
}

// At once, so that nobody sees half of it.
void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

}  // namespace

screen::screen() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void screen::say(const std::string& line) { put(erase() + line + "\n" + draw()); }

void screen::show(std::vector<std::string> lines) {
    if (!terminal_) return;
    const std::string erased = erase();
    live_ = std::move(lines);
    if (const std::size_t rows = terminal_size().rows; live_.size() > rows) live_.resize(rows);
    put(erased + draw());
}

std::string screen::erase() const {
    return live_.empty() ? std::string() : fmt::format("\r\x1b[{}A\x1b[J", live_.size());
}

// A line that wraps would take two, and the next erase() would miss one.
std::string screen::draw() const {
    std::string text;
    const std::size_t width = live_.empty() ? 0 : terminal_size().columns;
    for (const std::string& line : live_) text.append(line, 0, width).append("\n");
    return text;
}

}  // namespace demo
