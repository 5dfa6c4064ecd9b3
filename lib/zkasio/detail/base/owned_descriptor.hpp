#pragma once

#include <unistd.h>

#include <utility>

namespace zkasio::detail {

/// Owns a descriptor, and closes it.
class owned_descriptor {
public:
    explicit owned_descriptor(int fd = -1) noexcept : fd_(fd) {}
    ~owned_descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    owned_descriptor(owned_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    owned_descriptor& operator=(owned_descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }

    int get() const noexcept { return fd_; }
    void release() noexcept { fd_ = -1; }  ///< the caller owns the descriptor from now on

private:
    int fd_;
};

}  // namespace zkasio::detail
