#include "keys.hpp"

#include "terminal.hpp"

#include <zkasio/task_scope.hpp>

#include <asio/buffer.hpp>
#include <asio/use_awaitable.hpp>

#include <csignal>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace zklock {

key_reader::key_reader(asio::any_io_executor executor) : executor_(std::move(executor)), continued_(executor_) {
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
    continued_.add(SIGCONT);
    set();
}

key_reader::~key_reader() {
    if (terminal_) ::tcsetattr(terminal_->native_handle(), TCSAFLUSH, &before_);  // drops keys that nobody has read
}

void key_reader::set() noexcept {
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    const int terminal = terminal_->native_handle();
    if (::tcgetpgrp(terminal) == ::getpgrp()) ::tcsetattr(terminal, TCSADRAIN, &now);
}

// While we were stopped, the shell has set the terminal as it likes it.
asio::awaitable<void> key_reader::set_again_when_continued() {
    for (;;) {
        co_await continued_.async_wait(asio::use_awaitable);
        set();
    }
}

asio::awaitable<void> key_reader::quit() {
    auto body = [this](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(set_again_when_continued());
        for (char key = 0; key != 'q' && key != 'Q';)
            co_await terminal_->async_read_some(asio::buffer(&key, 1), asio::use_awaitable);
        tasks.cancel();
    };
    co_await zkasio::with_task_scope(body);
}

}  // namespace zklock
