#include "terminal_job.hpp"

#include <csignal>

#include <unistd.h>

namespace zklock {
namespace {

// Who is in the background is stopped for tcsetpgrp(), unless SIGTTOU is blocked.
void give(int terminal, pid_t group) noexcept {
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU);
    ::sigprocmask(SIG_BLOCK, &stop, &before);
    ::tcsetpgrp(terminal, group);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

terminal_job::terminal_job() noexcept {
    if (::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) terminal_ = STDIN_FILENO;
}

void terminal_job::lend_to(pid_t group) const noexcept {
    if (terminal_ >= 0) give(terminal_, group);
}

void terminal_job::take_back() const noexcept {
    if (terminal_ >= 0) give(terminal_, ::getpgrp());
}

bool terminal_job::stop_us_too() const noexcept {
    if (terminal_ < 0) return false;
    take_back();
    ::kill(0, SIGTSTP);  // we go on behind this when a shell says "fg" or "bg"
    return ::tcgetpgrp(terminal_) == ::getpgrp();
}

}  // namespace zklock
