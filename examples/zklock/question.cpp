#include "question.hpp"

#include "terminal.hpp"

#include <asio/buffer.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace zklock {

asio::awaitable<answer> ask(std::string question) {
    if (::isatty(STDIN_FILENO) != 1) {
        say("there is no terminal to ask at: say --yes");
        co_return answer::nobody_there;
    }
    // Opened anew: Asio makes it non-blocking, which the shell's own is not to become.
    const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) throw std::system_error(errno, std::generic_category(), "/dev/tty");
    asio::posix::stream_descriptor in(co_await asio::this_coro::executor, terminal);
    const std::string prompt = question + " [y/N] ";
    [[maybe_unused]] const auto written = ::write(terminal, prompt.data(), prompt.size());
    std::string line;
    std::error_code end;
    co_await asio::async_read_until(in, asio::dynamic_buffer(line, 1024), '\n',
                                    asio::redirect_error(asio::use_awaitable, end));
    const bool agreed = !end && (line[0] == 'y' || line[0] == 'Y');
    co_return agreed ? answer::yes : answer::no;
}

}  // namespace zklock
