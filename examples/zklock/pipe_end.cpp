#include "pipe_end.hpp"

#include <asio/posix/stream_descriptor.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zklock {

asio::awaitable<bool> other_end_closed(int descriptor) {
    struct stat what{};
    if (::fstat(descriptor, &what) != 0 || !S_ISFIFO(what.st_mode)) co_return false;
    // Opened anew: Asio makes it non-blocking, which the one that we share with other processes is not to become.
    const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
    const int direction = descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY;
    const int again = ::open(name.c_str(), direction | O_NONBLOCK | O_CLOEXEC);
    if (again < 0) co_return errno == ENXIO;  // nobody reads
    asio::posix::stream_descriptor pipe(co_await asio::this_coro::executor, again);
    co_await pipe.async_wait(asio::posix::stream_descriptor::wait_error, asio::use_awaitable);
    co_return true;
}

}  // namespace zklock
