#include <zkasio/detail/socket_watch.hpp>

#include <asio/error.hpp>

#include <fcntl.h>
#include <unistd.h>

namespace zkasio::detail {

void socket_watch::start(std::shared_ptr<void> keep_alive, on_ready ready) {
    keep_alive_ = keep_alive;
    ready_ = std::move(ready);
}

void socket_watch::close() {
    // At once: as long as a duplicate is open, the kernel does not tell the server that we are gone.
    for (direction* d : {&reading_, &writing_}) {
        d->descriptor.reset();
        d->waiting = false;
    }
}

void socket_watch::arm(int descriptor, std::uint64_t connection, bool read, bool write) {
    if (connection != connection_ || descriptor < 0) {
        close();
        connection_ = connection;
    }
    if (descriptor < 0) return;
    // Out of descriptors: the timer brings us back here.
    if (read && duplicate(reading_, descriptor)) wait(reading_);
    if (write && duplicate(writing_, descriptor)) wait(writing_);
}

bool socket_watch::duplicate(direction& d, int descriptor) {
    if (d.descriptor) return true;
    const int duplicate = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) return false;
    auto created = std::make_unique<asio::posix::stream_descriptor>(strand_);
    std::error_code refused;
    created->assign(duplicate, refused);
    if (refused) {
        ::close(duplicate);
        return false;
    }
    d.descriptor = std::move(created);
    return true;
}

void socket_watch::wait(direction& d) {
    if (std::exchange(d.waiting, true)) return;
    const auto owner = keep_alive_.lock();
    if (!owner) return;
    d.descriptor->async_wait(d.what, [self = shared_from_this(), owner, generation = connection_, &d](std::error_code closed) {
        if (closed != asio::error::operation_aborted && generation == self->connection_ && d.descriptor) self->ready(d);
    });
}

void socket_watch::ready(direction& d) {
    d.waiting = false;
    const bool is_read = &d == &reading_;
    if (!is_read) d.descriptor.reset();
    ready_(is_read, !is_read);
}

}  // namespace zkasio::detail
