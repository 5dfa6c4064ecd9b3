#include <zkasio/log_record.hpp>

#include <zkasio/printable.hpp>

#include <poll.h>
#include <unistd.h>

namespace zkasio {

std::string_view to_string(log_level l) noexcept {
    switch (l) {
        case log_level::debug: return "debug";
        case log_level::info: return "info";
        case log_level::warning: return "warning";
        case log_level::error: return "error";
    }
    return "unknown";
}

log_record::log_record(log_level level, std::string_view text, std::vector<log_field> fields)
    : level_(level), text_(printable(text)), fields_(std::move(fields)) {
    for (log_field& f : fields_) f.value = printable(f.value);
}

void log_to_stderr(const log_record& r) {
    const std::string line = "zkasio: " + std::string(to_string(r.level())) + ": " + r.text() + '\n';
    // A pipe that is full, or that nobody reads any more, must neither stop nor end the program.
    pollfd to{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&to, 1, 0) != 1 || (to.revents & (POLLERR | POLLNVAL)) != 0) return;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace zkasio
