#include "process.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

extern char** environ;

namespace demo {
namespace {

void check(int code, const char* what) {
    if (code != 0) throw std::system_error(code, std::generic_category(), what);
}

pid_t spawn(std::vector<std::string>& arguments, int in, int out) {
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    check(::posix_spawn_file_actions_init(&actions), "posix_spawn");
    ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    check(failed, "posix_spawn");
    return pid;
}

}  // namespace

// Close-on-exec: a worker that inherited another one's pipes would keep them open.
process::pipes::pipes() {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0) check(errno, "pipe");
    child_in = in[0], to_child = in[1];
    if (::pipe2(out, O_CLOEXEC) != 0) {
        const int why = errno;
        ::close(child_in), ::close(to_child);
        check(why, "pipe");
    }
    from_child = out[0], child_out = out[1];
}

process::pipes::~pipes() {
    for (const int fd : {child_in, to_child, from_child, child_out})
        if (fd >= 0) ::close(fd);
}

process::process(asio::any_io_executor executor, std::vector<std::string> arguments)
    : process(std::move(executor), std::move(arguments), pipes()) {}

process::process(asio::any_io_executor executor, std::vector<std::string> arguments, pipes&& p)
    : pid_(spawn(arguments, p.child_in, p.child_out)),
      input_(std::exchange(p.to_child, -1)),
      output_(std::move(executor), std::exchange(p.from_child, -1)) {}

process::~process() {
    signal(SIGKILL);
    reap();
    close_input();
}

// A few words into an empty pipe: that does not block.
void process::write(std::string_view line) noexcept {
    if (input_ < 0) return;
    std::string text(line);
    text += '\n';
    [[maybe_unused]] const auto n = ::write(input_, text.data(), text.size());  // its end is noticed elsewhere
}

void process::close_input() noexcept {
    if (const int fd = std::exchange(input_, -1); fd >= 0) ::close(fd);
}

void process::signal(int number) noexcept {
    if (!reaped_) ::kill(pid_, number);
}

int process::reap() noexcept {
    while (!reaped_) {
        const pid_t result = ::waitpid(pid_, &status_, 0);
        reaped_ = result == pid_ || errno != EINTR;
    }
    return status_;
}

std::string describe_status(int status) {
    if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace demo
