#pragma once

#include <sys/types.h>

namespace zklock {

/// Lends our terminal to a process group, as a shell does: without that an interactive command is stopped when it
/// reads. Does nothing when the standard input is no terminal, or when we are in its background.
class terminal_job {
public:
    terminal_job() noexcept;
    bool ours() const noexcept { return terminal_ >= 0; }

    /// Also for the child itself, between fork() and exec(). With all signals blocked, or SIGTTOU ignored.
    void lend_to(pid_t group) const noexcept;
    void take_back() const noexcept;
    /// The command was stopped from the keyboard: stops us and the rest of our job, so that the shell has the terminal,
    /// and returns when the shell goes on with us. @return whether that is in the foreground.
    bool stop_us_too() const noexcept;

private:
    int terminal_ = -1;
};

}  // namespace zklock
