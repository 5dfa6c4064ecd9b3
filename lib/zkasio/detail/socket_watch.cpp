#include <zkasio/detail/socket_watch.hpp>

#include <fcntl.h>
#include <unistd.h>

namespace zkasio::detail {

void socket_watch::start(std::shared_ptr<void> keep_alive, on_ready ready) {
    keep_alive_ = keep_alive;
    ready_ = std::move(ready);
}

void socket_watch::close() {
    // At once: as long as the duplicate is open, the kernel does not tell the server that we are gone.
    descriptor_.reset();
    reading_ = writing_ = false;
}

void socket_watch::arm(int descriptor, std::uint64_t connection, bool read, bool write) {
    if (connection != connection_ || descriptor < 0) {
        close();
        connection_ = connection;
    }
    if (descriptor < 0) return;
    if (!descriptor_) {
        const int duplicate = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        if (duplicate < 0) return;  // out of descriptors: the timer brings us back here
        auto created = std::make_unique<asio::posix::stream_descriptor>(strand_);
        std::error_code refused;
        created->assign(duplicate, refused);
        if (refused) {
            ::close(duplicate);
            return;
        }
        descriptor_ = std::move(created);
    }
    if (read) wait(asio::posix::stream_descriptor::wait_read, reading_);
    if (write) wait(asio::posix::stream_descriptor::wait_write, writing_);
}

void socket_watch::wait(asio::posix::stream_descriptor::wait_type type, bool& waiting) {
    if (std::exchange(waiting, true)) return;
    const auto owner = keep_alive_.lock();
    if (!owner) return;
    const bool is_read = type == asio::posix::stream_descriptor::wait_read;
    descriptor_->async_wait(
        type, [self = shared_from_this(), owner, generation = connection_, is_read](std::error_code) {
            if (generation != self->connection_ || !self->descriptor_) return;
            (is_read ? self->reading_ : self->writing_) = false;
            self->ready_(is_read, !is_read);
        });
}

}  // namespace zkasio::detail
