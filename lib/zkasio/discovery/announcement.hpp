#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

namespace zkasio {

namespace discovery_detail {
struct make_announcement;
}

/// An instance that clients can find for as long as this lives: see registry::announce(). Its node is a
/// persistent_node: created again in each new session, and when somebody has removed it.
///
/// *Lifetime*: move-only; withdraws when destroyed, in the background (client::idle() waits for that). Until then it
/// keeps the client open, and like a guard it must not outlive the execution context of its client. May be used on any
/// thread. Its members return what may be awaited when it is gone: it is withdrawn by then. One that was made without
/// arguments or moved from fails with errc::invalid_argument; withdraw() does nothing.
class ZKASIO_EXPORT announcement {
public:
    announcement() noexcept = default;

    /// Tells clients something else of the instance: another address, another payload, that it is not enabled().
    /// *Completes when* a server has confirmed it. While there is no node, it is created with that.
    /// *Fails with* errc::invalid_argument for another name, id or type than those that were announced, and as
    /// service_instance::to_json(); otherwise as persistent_node::set_data(). *Cancellation* ends the wait only.
    asio::awaitable<void> update(service_instance is) const;

    /// Removes the node, from the call on: nobody new will come. See persistent_node::leave().
    asio::awaitable<void> withdraw() const;

    /// *Completes when* it is withdrawn. *Fails with* what has ended it otherwise: see persistent_node::ended().
    /// *Cancellation* ends the wait only.
    asio::awaitable<void> ended() const;

    persistent_node_state state() const noexcept;

    /// Of the node, as it was created first.
    const std::string& path() const noexcept { return path_; }

private:
    friend struct discovery_detail::make_announcement;
    announcement(persistent_node node, std::string path, service_instance announced);

    struct parts;
    std::shared_ptr<const parts> is_;  // null: of nothing
    std::string path_;
};

}  // namespace zkasio
