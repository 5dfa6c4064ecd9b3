#pragma once

#include <zkasio/clock.hpp>

#include <cstdint>
#include <string>

namespace soak {

/// What a process has intended, got and lost, for check.py. One line for each event, with one write(2): what was
/// written stays when the process is killed.
///
/// A line is "TIME VERB OPERATION [ARGUMENT...]"; TIME is that of CLOCK_BOOTTIME in nanoseconds, OPERATION a number
/// that is unique in this file. README.md lists the verbs.
class history {
public:
    /// Throws std::system_error.
    explicit history(const std::string& file);
    history(const history&) = delete;
    history& operator=(const history&) = delete;
    ~history();

    std::uint64_t next_operation() { return ++last_; }
    /// With the present time.
    void note(const std::string& event) { note(zkasio::boot_clock::now(), event); }
    void note(zkasio::boot_clock::time_point when, const std::string& event);

private:
    int file_;
    std::uint64_t last_ = 0;
};

}  // namespace soak
