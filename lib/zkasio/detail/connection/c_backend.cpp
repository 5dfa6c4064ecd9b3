#include <zkasio/detail/connection/c_backend.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace zkasio::detail {

dead_descriptor::dead_descriptor() {
    std::array<int, 2> pair{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) == 0) {
        fd_ = pair[0];
        ::close(pair[1]);
    }
}

dead_descriptor::~dead_descriptor() {
    if (fd_ >= 0) ::close(fd_);
}

void dead_descriptor::replace(int victim) const {
    if (fd_ < 0 || ::dup3(fd_, victim, O_CLOEXEC) < 0) ::shutdown(victim, SHUT_RDWR);
}

c_backend::c_backend(backend_listener& listener) : listener_(listener) {
    static const int survives_fork = ::pthread_atfork([] { zkasio_the_c_library_1()->before_fork(); },
                                                      [] { zkasio_the_c_library_1()->after_fork(); },
                                                      [] { zkasio_the_c_library_1()->after_fork(); });
    static_cast<void>(survives_fork);
    static bool is_set_up = false;
    const std::lock_guard guard(zkasio_the_c_library_1()->mutex);
    if (std::exchange(is_set_up, true)) return;
    zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);  // fact 29
    zoo_deterministic_conn_order(1);          // fact 2: otherwise the library reseeds the process's random()
}

void c_backend::close() {
    if (!zh_) return;
    left_by_us_ = true;
    if (made_here_.forked())
        abandon();
    else if (!is_unrecoverable(zh_))
        fail_connection();
    ending_connection_ = true;
    c_backend* const outer = std::exchange(library_call::current, this);
    zookeeper_close(std::exchange(zh_, nullptr));
    library_call::current = outer;
    adopt_descriptor(-1);
    multis_.clear();
    tell_news();
}

// In a child process: the connection is its parent's, and only this process's copy of the descriptor may be closed.
void c_backend::abandon() {
    const int state = zoo_state(zh_);
    if (fd_ < 0 || is_unrecoverable(zh_) || state == 0 || state == ZOO_NOTCONNECTED_STATE) return;
    fail_connection();
}

std::unique_ptr<backend> make_c_backend(backend_listener& listener) { return std::make_unique<c_backend>(listener); }

}  // namespace zkasio::detail
