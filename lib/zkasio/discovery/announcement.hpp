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

/// An instance that clients can find for as long as this object lives: see registry::announce(). Its node is a
/// persistent_node: re-created in each new session, and when another client has removed it.
///
/// *Lifetime*: move-only. Destroying an announcement withdraws the instance, in the background (client::idle() waits
/// for that). Until then the announcement keeps the client open, and like a guard it must not outlive the execution
/// context of its client. May be used on any thread. The awaitables that the members return may be awaited after the
/// announcement is destroyed: the instance is then being withdrawn, or has been. An announcement that was made without
/// arguments or moved from fails with errc::invalid_argument; its withdraw() does nothing.
class ZKASIO_EXPORT announcement {
public:
    announcement() noexcept = default;

    /// Announces another state of the instance: another address, another payload, that it is not enabled().
    /// *Completes when* a server has confirmed the new state. If there is no node, one is created with the new state.
    /// *Fails with* errc::invalid_argument if the name, id or type differs from the announced one, and as
    /// service_instance::to_json(); otherwise as persistent_node::set_data().
    /// *Cancellation* ends only the wait.
    asio::awaitable<void> update(service_instance is) const;

    /// Removes the node, from the call on: no further client finds the instance. See persistent_node::leave().
    asio::awaitable<void> withdraw() const;

    /// *Completes when* the instance is withdrawn.
    /// *Fails with* the error that has ended the announcement otherwise: see persistent_node::ended().
    /// *Cancellation* ends only the wait.
    asio::awaitable<void> ended() const;

    persistent_node_state state() const noexcept;

    /// The path of the node, as it was created first.
    const std::string& path() const noexcept { return path_; }

private:
    friend struct discovery_detail::make_announcement;
    announcement(persistent_node node, std::string path, service_instance announced);

    struct parts;
    std::shared_ptr<const parts> is_;  // null: nothing is announced
    std::string path_;
};

}  // namespace zkasio
