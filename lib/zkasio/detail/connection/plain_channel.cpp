#include <zkasio/detail/connection/plain_channel.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace zkasio::detail {

secure_channel::transfer plain_channel::read(std::span<char> to) {
    const ssize_t n = ::recv(descriptor_, to.data(), to.size(), MSG_DONTWAIT);
    if (n > 0) return {progress::done, static_cast<std::size_t>(n)};
    return {n == 0 ? progress::ended : after_failure(progress::needs_input)};
}

secure_channel::transfer plain_channel::write(std::span<const char> from) {
    const ssize_t n = ::send(descriptor_, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return {progress::done, static_cast<std::size_t>(n)};
    return {after_failure(progress::needs_output)};
}

secure_channel::progress plain_channel::after_failure(progress otherwise) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return otherwise;
    failure_ = errno == EPIPE ? "closed by the server" : std::generic_category().message(errno);
    return progress::failed;
}

}  // namespace zkasio::detail
