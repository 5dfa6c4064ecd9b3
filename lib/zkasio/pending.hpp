#pragma once

#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

namespace zkasio {

namespace detail {
class core;
struct ticket;
}  // namespace detail

/// A request that was started and goes on, whether somebody awaits it or not. Several that are started one after
/// another without a co_await between them travel together and are answered after one round trip.
class pending {
public:
    pending(std::shared_ptr<detail::core> core, std::shared_ptr<detail::ticket> ticket, std::string operation,
            std::string path);

    /// Waits until the request was answered, without looking at the answer. *Cancellation*: ends the wait only.
    asio::awaitable<void> answered() const;

protected:
    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::ticket> ticket_;
    std::string operation_, path_;
};

class pending_create : public pending {
public:
    using pending::pending;
    /// As operations::create().
    asio::awaitable<created> result() const;
};

class pending_children : public pending {
public:
    using pending::pending;
    /// As operations::children().
    asio::awaitable<node_children> result() const;
};

class pending_removal : public pending {
public:
    using pending::pending;
    /// *Completes when* the node is certain to be gone.
    asio::awaitable<void> result() const;
};

}  // namespace zkasio
