#pragma once

#include <zkasio/detail/base/shutdown_service.hpp>
#include <zkasio/detail/base/strand.hpp>

#include <asio/posix/basic_stream_descriptor.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace zkasio::detail {

/// Waits, on the strand, until the backend's socket is readable or writable.
///
/// The library may close and reopen the same descriptor number at any time, which no reactor survives. So this class
/// registers a duplicate that only this class closes, one per connection (fact 3). Readiness of an older connection is
/// never reported. Writing has a duplicate of its own, for as long as writability is awaited: once a descriptor is
/// registered for writing, asio is woken up by every free send buffer.
class socket_watch : public std::enable_shared_from_this<socket_watch> {
public:
    using on_ready = std::function<void(bool readable, bool writable)>;

    explicit socket_watch(strand_type strand) : strand_(std::move(strand)) {}

    ~socket_watch() { close(); }

    /// @param keep_alive is held by every pending wait; `ready` must not outlive it.
    void start(std::shared_ptr<void> keep_alive, reactor_mark reactor, on_ready ready);

    /// Wait for these from now on. `connection` says which socket `descriptor` is. Returns 0, or the error number when
    /// one of them cannot be waited for: the process has no descriptors left.
    int arm(int descriptor, std::uint64_t connection, bool read, bool write);

    /// Wait for the same socket again.
    void rearm_read() {
        if (reading_.descriptor) wait(reading_);
    }

    void close();

private:
    /// Knows the type of its executor: a type-erased executor would take memory at each wait.
    using descriptor_type = asio::posix::basic_stream_descriptor<strand_type>;
    using wait_type = descriptor_type::wait_type;
    struct direction {
        wait_type what;
        std::unique_ptr<descriptor_type> descriptor{};
        bool waiting = false;
    };
    void wait(direction& d);
    int duplicate(direction& d, int descriptor);
    void ready(direction& d);
    void drop(direction& d);

    strand_type strand_;
    std::weak_ptr<void> keep_alive_;
    reactor_mark reactor_;
    on_ready ready_;
    std::uint64_t connection_ = 0;
    std::uint64_t generation_ = 0;  // of the waits: those from before the latest close() are ignored
    direction reading_{wait_type::wait_read}, writing_{wait_type::wait_write};
};

}  // namespace zkasio::detail
