#include "input.hpp"

#include <zkasio/printable.hpp>

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace zklock {

std::string read_file(const std::string& name) {
    const auto fail = [&name] { throw std::system_error(errno, std::generic_category(), name); };
    const int file = name == "-" ? ::dup(STDIN_FILENO) : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail();
    std::string text;
    std::array<char, 65536> chunk;
    for (;;) {
        const ssize_t n = ::read(file, chunk.data(), chunk.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            const int why = errno;
            ::close(file);
            errno = why;
            fail();
        }
        if (n == 0) break;
        text.append(chunk.data(), static_cast<std::size_t>(n));
    }
    ::close(file);
    return text;
}

std::string printable_lines(std::string_view text) {
    std::string result;
    for (;;) {
        const auto end = text.find_first_of("\n\t");
        result += zkasio::printable(text.substr(0, end));
        if (end == std::string_view::npos) return result;
        result += text[end];
        text.remove_prefix(end + 1);
    }
}

}  // namespace zklock
