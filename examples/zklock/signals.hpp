#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/task_scope.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/signal_set.hpp>

#include <functional>

namespace zklock {

/// Remembers what signals did when the program began, and ignores SIGPIPE. First thing in main().
void note_signals();

/// As they were then, for a command between fork() and exec(). Async-signal-safe.
void restore_signals() noexcept;

/// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2, unless they were ignored when the program began (as nohup
/// does with SIGHUP): forwarded to a command while there is one, and else the end of what we do.
class signal_router {
public:
    explicit signal_router(asio::any_io_executor executor);

    /// Runs until it is cancelled. A signal that nobody wants cancels `work`.
    asio::awaitable<void> route(zkasio::task_scope& work);

    /// From now on they go there; to nobody when it is empty.
    void forward_to(std::function<void(int)> command) { command_ = std::move(command); }

    /// Whether one of those that ask a program to end has come: not SIGUSR1 and SIGUSR2.
    bool end_requested() const noexcept { return end_requested_; }
    /// The signal that has ended what we did; 0: none has.
    int interrupted_by() const noexcept { return interrupted_by_; }

private:
    asio::signal_set signals_;
    std::function<void(int)> command_;
    bool end_requested_ = false;
    int interrupted_by_ = 0;
};

/// Ends this process by that signal, so that a shell sees what has happened.
[[noreturn]] void die_by(int signal) noexcept;

}  // namespace zklock
