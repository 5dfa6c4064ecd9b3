#include "terminal.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <unistd.h>

namespace zklock {
namespace {

bool coloured = false;

// 0 when all is written, else errno.
int write_all(int fd, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
}

const char* code_of(colour c) noexcept {
    switch (c) {
        case colour::red: return "31";
        case colour::green: return "32";
        case colour::yellow: return "33";
        case colour::dim: return "2";
        case colour::bold: return "1";
    }
    return "0";
}

}  // namespace

bool output_is_terminal() noexcept { return ::isatty(STDOUT_FILENO) == 1; }

void set_colours(when_to_colour w) {
    const char* const no_colour = std::getenv("NO_COLOR");
    const char* const kind = std::getenv("TERM");
    const bool fits = output_is_terminal() && kind && *kind && std::string_view(kind) != "dumb";
    const bool wanted = !no_colour || !*no_colour;
    coloured = w == when_to_colour::always || (w == when_to_colour::automatic && fits && wanted);
}

std::string painted(colour c, std::string_view text) {
    if (!coloured) return std::string(text);
    return std::string("\x1b[").append(code_of(c)).append("m").append(text).append("\x1b[0m");
}

void say(std::string_view text) noexcept {
    try {
        write_all(STDERR_FILENO, std::string("zklock: ").append(text).append("\n"));
    } catch (const std::bad_alloc&) {
    }
}

void print(std::string_view text) {
    if (const int failed = write_all(STDOUT_FILENO, text))
        throw std::system_error(failed, std::generic_category(), "standard output");
}

std::string padded(std::string text, std::size_t width) {
    if (text.size() < width) text.append(width - text.size(), ' ');
    return text;
}

}  // namespace zklock
