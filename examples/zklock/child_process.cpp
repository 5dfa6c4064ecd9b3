#include "child_process.hpp"

#include "signals.hpp"

#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zklock {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void fail(int code, const std::string& what) {
    throw std::system_error(code, std::generic_category(), what);
}

// What a child needs between fork() and exec(), made before: it must not allocate then.
struct prepared {
    explicit prepared(const command& what) : arguments(what.arguments) {
        for (std::string& a : arguments) argv.push_back(a.data());
        argv.push_back(nullptr);
        for (char** e = ::environ; *e; ++e)
            if (!replaced(what, *e)) variables.emplace_back(*e);
        for (const auto& [name, value] : what.environment) variables.push_back(name + "=" + value);
        for (std::string& v : variables) envp.push_back(v.data());
        envp.push_back(nullptr);
    }

    static bool replaced(const command& what, std::string_view variable) {
        const std::string_view name = variable.substr(0, variable.find('='));
        for (const auto& [ours, value] : what.environment)
            if (ours == name) return true;
        for (const std::string& hidden : what.withheld)
            if (hidden == name) return true;
        return false;
    }

    std::vector<std::string> arguments, variables;
    std::vector<char*> argv, envp;
};

// In the child, with all signals blocked. Async-signal-safe.
[[noreturn]] void become(const prepared& p, pid_t parent, watchdog* killer, const terminal_job& terminal, int report,
                         const sigset_t& mask) noexcept {
    ::setpgid(0, 0);
    // Second line, should zklock and its watchdog be killed at once. It reaches this process only, not its children.
    if (killer) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (killer && ::getppid() != parent) ::_exit(128 + SIGKILL);
    if (killer) killer->guard(::getpid());
    terminal.lend_to(::getpid());
    restore_signals();
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execvpe(p.argv[0], p.argv.data(), p.envp.data());
    const int failed = errno;
    [[maybe_unused]] const auto n = ::write(report, &failed, sizeof(failed));
    ::_exit(127);
}

// How long the end of a group whose processes are no children of ours may stay unnoticed.
constexpr auto pause_between_looks = 50ms;

}  // namespace

child_process::child_process(asio::any_io_executor executor, watchdog* killer)
    : children_(std::move(executor), SIGCHLD), watchdog_(killer) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

child_process::~child_process() {
    if (group_ == 0) return;
    ::kill(-group_, SIGKILL);
    terminal_.take_back();
}

asio::awaitable<void> child_process::start(command what) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno, "pipe");
    asio::posix::stream_descriptor report(children_.get_executor(), ends[0]);
    const int failed = launch(what, ends[1]);
    ::close(ends[1]);
    if (failed != 0) fail(failed, "fork");
    // The pipe ends without a word when the child has called exec().
    int refused = 0;
    std::error_code end;
    co_await asio::async_read(report, asio::buffer(&refused, sizeof(refused)),
                              asio::redirect_error(asio::use_awaitable, end));
    if (end == asio::error::eof) co_return;
    if (end) throw std::system_error(end);
    co_await ended();
    fail(refused, what.arguments.front());
}

int child_process::launch(const command& what, int report) {
    const prepared p(what);
    // A signal that came to the child while it still has our handlers would be reported to our loop.
    sigset_t all, before;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before);
    const pid_t us = ::getpid(), child = ::fork();
    if (child == 0) become(p, us, watchdog_, terminal_, report, before);
    const int failed = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) return failed;
    ::setpgid(child, child);  // it does so itself, maybe later than we send it a signal
    leader_ = group_ = child;
    if (!what.alone) rest_.emplace(child);
    return 0;
}

asio::awaitable<int> child_process::ended() {
    for (;;) {
        reap();
        if (group_ == 0) co_return status_;
        if (leader_ != 0) {
            co_await children_.async_wait(asio::use_awaitable);
            continue;
        }
        auto next_look = zkasio::timeout(pause_between_looks, children_.async_wait(asio::use_awaitable));
        const auto woken = co_await zkasio::as_result(std::move(next_look));
        if (!woken && woken.error().code() != zkasio::errc::timed_out) throw woken.error();
    }
}

void child_process::reap() {
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid <= 0 && !(pid < 0 && errno == EINTR)) break;
        if (pid > 0) reaped(pid, status);
    }
    if (leader_ != 0 || group_ == 0 || (rest_ && rest_->runs())) return;
    group_ = 0;
    if (watchdog_) watchdog_->guard(0);
    terminal_.take_back();
}

void child_process::reaped(pid_t pid, int status) {
    if (WIFSTOPPED(status)) {
        const bool from_terminal = terminal_.ours() && WSTOPSIG(status) != SIGSTOP;
        if (pid != leader_ || !from_terminal) return;
        if (terminal_.stop_us_too()) terminal_.lend_to(group_);
        signal(SIGCONT);
    } else if (watchdog_ && pid == watchdog_->id()) {
        watchdog_->forget();
    } else if (pid == leader_) {
        leader_ = 0;
        status_ = status;
    }
}

void child_process::signal(int number) noexcept {
    if (group_ != 0) ::kill(-group_, number);
}

int exit_code_of(int wait_status) noexcept {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe(int wait_status) {
    if (!WIFSIGNALED(wait_status)) return "ended with status " + std::to_string(WEXITSTATUS(wait_status));
    const int number = WTERMSIG(wait_status);
    return "was killed by signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
}

}  // namespace zklock
