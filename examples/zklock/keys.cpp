#include "keys.hpp"

#include "terminal.hpp"

#include <zkasio/coroutines/task_scope.hpp>

#include <asio/error.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace zklock {

key_reader::key_reader(asio::any_io_executor executor)
    : executor_(std::move(executor)), continued_(executor_), stopped_(executor_), look_again_(executor_) {
    const bool in_front = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    if (!in_front || !output_is_terminal()) return;
    // Opened anew: Asio makes it non-blocking, which the shell's own is not to become.
    const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) return;
    if (::tcgetattr(terminal, &before_) != 0) {
        ::close(terminal);
        return;
    }
    terminal_.emplace(executor_, terminal);
    terminal_->native_non_blocking(true);
    continued_.add(SIGCONT);
    stopped_.add(SIGTSTP);
    set();
}

key_reader::~key_reader() {
    if (terminal_) set_as_before();
}

// Drops keys that nobody has read. From the background it would stop us.
void key_reader::set_as_before() noexcept {
    if (in_front()) ::tcsetattr(terminal_->native_handle(), TCSAFLUSH, &before_);
}

bool key_reader::in_front() noexcept { return ::tcgetpgrp(terminal_->native_handle()) == ::getpgrp(); }

void key_reader::set() noexcept {
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    if (in_front()) ::tcsetattr(terminal_->native_handle(), TCSADRAIN, &now);
}

// While we were stopped, the shell has set the terminal as it likes it.
asio::awaitable<void> key_reader::set_again_when_continued() {
    for (;;) {
        co_await continued_.async_wait(asio::use_awaitable);
        set();
        look_again_.cancel();
    }
}

// Not every shell sets the terminal when we are stopped.
asio::awaitable<void> key_reader::set_as_before_when_stopped() {
    for (;;) {
        co_await stopped_.async_wait(asio::use_awaitable);
        set_as_before();
        ::raise(SIGSTOP);
    }
}

// A read from the background would stop us. A command that runs there and is fetched gets no signal.
asio::awaitable<char> key_reader::next() {
    for (;;) {
        while (!in_front()) {
            std::error_code woken;
            look_again_.expires_after(std::chrono::seconds(1));
            co_await look_again_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
            set();
        }
        co_await terminal_->async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
        if (!in_front()) continue;
        char key = 0;
        const ssize_t got = ::read(terminal_->native_handle(), &key, 1);
        if (got == 1) co_return key;
        if (got == 0) throw std::system_error(asio::error::eof);
        if (errno != EAGAIN && errno != EINTR) throw std::system_error(errno, std::system_category(), "read a key");
    }
}

asio::awaitable<void> key_reader::quit() {
    auto body = [this](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(set_again_when_continued());
        tasks.spawn(set_as_before_when_stopped());
        for (char key = 0; key != 'q' && key != 'Q';) key = co_await next();
        tasks.cancel();
    };
    co_await zkasio::with_task_scope(body);
}

}  // namespace zklock
