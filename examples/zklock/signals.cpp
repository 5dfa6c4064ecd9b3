#include "signals.hpp"

#include <asio/use_awaitable.hpp>

#include <array>
#include <csignal>

#include <unistd.h>

namespace zklock {
namespace {

constexpr std::array<int, 6> forwarded{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// Those whose handling a command would inherit from us, or that would reach our handlers in the child.
constexpr std::array<int, 8> changed{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGCHLD};
std::array<struct sigaction, changed.size()> at_start{};

bool was_ignored(int signal) noexcept {
    for (std::size_t i = 0; i < changed.size(); ++i)
        if (changed[i] == signal) return at_start[i].sa_handler == SIG_IGN;
    return false;
}

}  // namespace

void note_signals() {
    for (std::size_t i = 0; i < changed.size(); ++i) ::sigaction(changed[i], nullptr, &at_start[i]);
    std::signal(SIGPIPE, SIG_IGN);
}

void restore_signals() noexcept {
    for (std::size_t i = 0; i < changed.size(); ++i) ::sigaction(changed[i], &at_start[i], nullptr);
}

signal_router::signal_router(asio::any_io_executor executor) : signals_(std::move(executor)) {
    for (const int number : forwarded)
        if (!was_ignored(number)) signals_.add(number);
}

asio::awaitable<void> signal_router::route(zkasio::task_scope& work) {
    for (;;) {
        const int number = co_await signals_.async_wait(asio::use_awaitable);
        if (number != SIGUSR1 && number != SIGUSR2) end_requested_ = true;
        if (command_) {
            command_(number);
            continue;
        }
        interrupted_by_ = number;
        work.cancel();
        co_return;
    }
}

void die_by(int signal) noexcept {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
    ::_exit(128 + signal);
}

}  // namespace zklock
