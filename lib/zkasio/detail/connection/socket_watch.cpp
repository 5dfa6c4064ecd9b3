#include <zkasio/detail/connection/socket_watch.hpp>

#include <zkasio/detail/base/owned_descriptor.hpp>

#include <asio/error.hpp>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <vector>

namespace zkasio::detail {

void socket_watch::start(std::shared_ptr<void> keep_alive, reactor_mark reactor, on_ready ready) {
    keep_alive_ = keep_alive;
    reactor_ = std::move(reactor);
    ready_ = std::move(ready);
}

void socket_watch::close() {
    ++generation_;
    // At once: as long as a duplicate is open, the kernel does not tell the server that the client is gone.
    for (direction* d : {&reading_, &writing_}) {
        drop(*d);
        d->waiting = false;
    }
}

// In a child process whose context has not been told of the fork, asio's epoll set is the parent's: removing the
// descriptor from it would remove the parent's descriptor. So asio's object is left alone there for good, and only this
// process's copy of the connection is closed, by putting another file behind its number.
void socket_watch::drop(direction& d) {
    if (!d.descriptor) return;
    if (!reactor_ || !reactor_->forked()) return d.descriptor.reset();
    const int nothing = ::eventfd(0, EFD_CLOEXEC);
    ::dup3(nothing, d.descriptor->native_handle(), O_CLOEXEC);
    ::close(nothing);
    static std::mutex mutex;
    static auto& abandoned =
        *new std::vector<std::unique_ptr<descriptor_type>>;  // outlives all contexts
    const std::lock_guard lock(mutex);
    abandoned.push_back(std::move(d.descriptor));
}

int socket_watch::arm(int descriptor, std::uint64_t connection, bool read, bool write) {
    if (connection != connection_ || descriptor < 0) {
        close();
        connection_ = connection;
    }
    if (descriptor < 0) return 0;
    if (read) {
        if (const int refused = duplicate(reading_, descriptor)) return refused;
        wait(reading_);
    }
    if (write) {
        if (const int refused = duplicate(writing_, descriptor)) return refused;
        wait(writing_);
    }
    return 0;
}

int socket_watch::duplicate(direction& d, int descriptor) {
    if (d.descriptor) return 0;
    auto created = std::make_unique<descriptor_type>(strand_);
    owned_descriptor duplicate(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (duplicate.get() < 0) return errno;
    std::error_code refused;
    created->assign(duplicate.get(), refused);
    if (refused) return refused.value();
    duplicate.release();
    d.descriptor = std::move(created);
    return 0;
}

void socket_watch::wait(direction& d) {
    if (d.waiting) return;
    const auto owner = keep_alive_.lock();
    if (!owner) return;
    d.descriptor->async_wait(
        d.what, [self = shared_from_this(), owner, generation = generation_, &d](std::error_code closed) {
            if (closed != asio::error::operation_aborted && generation == self->generation_ && d.descriptor)
                self->ready(d);
        });
    d.waiting = true;
}

void socket_watch::ready(direction& d) {
    d.waiting = false;
    const bool is_read = &d == &reading_;
    if (!is_read) drop(d);
    ready_(is_read, !is_read);
}

}  // namespace zkasio::detail
