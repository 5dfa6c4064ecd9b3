#include "history.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace soak {

history::history(const std::string& file)
    : file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), file);
}

history::~history() { ::close(file_); }

void history::note(zkasio::boot_clock::time_point when, const std::string& event) {
    const std::string line = std::to_string(when.time_since_epoch().count()) + " " + event + "\n";
    // A history with a gap proves nothing.
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        throw std::system_error(errno, std::generic_category(), "history");
}

}  // namespace soak
