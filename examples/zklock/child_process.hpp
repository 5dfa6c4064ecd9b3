#pragma once

#include "process_group.hpp"
#include "terminal_job.hpp"
#include "watchdog.hpp"

#include <zkasio/asio_version.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/signal_set.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace zklock {

/// What is to be run.
struct command {
    std::vector<std::string> arguments;                             ///< the first is the program, looked for in PATH
    std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours
    std::vector<std::string> withheld;                              ///< variables of ours that it does not see
    bool alone = false;  ///< over when the command itself has ended: what it leaves running in its group goes on
};

/// A command in a process group of its own, which a watchdog kills when we cannot.
///
/// When we are in the foreground of a terminal, the group gets that. It is over when the command and all that it has
/// left behind in its group have ended: zklock becomes the parent of those whose parents have ended
/// (PR_SET_CHILD_SUBREAPER). Processes that leave the group, as daemons do, are not followed; with
/// command::alone, nothing but the command itself is.
///
/// On one strand. One at a time in a program, since it reaps all children.
class child_process {
public:
    /// @param killer may be null: then nobody but us kills it.
    child_process(asio::any_io_executor executor, watchdog* killer);
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    /// Kills what is left.
    ~child_process();

    /// *Completes when* it runs. *Fails with* std::system_error when it cannot be executed: ENOENT, EACCES, ...
    asio::awaitable<void> start(command what);

    /// *Completes when* it is over, with what waitpid() has said of the command itself.
    asio::awaitable<int> ended();

    /// To the whole group. Without effect when that is gone.
    void signal(int number) noexcept;
    bool running() const noexcept { return group_ != 0; }

private:
    int launch(const command& what, int report);  // 0, or errno
    void reap();
    void reaped(pid_t pid, int status);

    asio::signal_set children_;
    watchdog* watchdog_;
    terminal_job terminal_;
    pid_t leader_ = 0;  // 0 when it has been reaped
    pid_t group_ = 0;   // 0 when it is gone
    std::optional<process_group> rest_;  // the same, to be looked at; none if the command is `alone`
    int status_ = 0;
};

/// As shells do: the status of a process that has ended by itself, or 128 and the number of the signal.
int exit_code_of(int wait_status) noexcept;
/// "ended with status 1", "was killed by signal 9 (Killed)"
std::string describe(int wait_status);

}  // namespace zklock
