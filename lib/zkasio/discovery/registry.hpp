#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/instance_format.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

class registry_options {
public:
    registry_options() {}  // user-provided: g++ 12 destroys aggregate temporaries of a co_await expression twice
    /// The ACL of the nodes of instances, and of the nodes that are created above them (client_options::default_acl()).
    registry_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }

    /// How instances are written and read (as Curator does).
    registry_options& format(instance_format f) { format_ = std::move(f); return *this; }

    const zkasio::acl& acl() const noexcept { return acl_; }
    const instance_format& format() const noexcept { return format_; }

private:
    zkasio::acl acl_ = default_acl();
    instance_format format_;
};

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
    /// *Fails with* errc::invalid_argument if the name, id or type differs from the announced one; with what the format
    /// fails with, as service_instance::to_json(); otherwise as persistent_node::set_data().
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
    announcement(persistent_node node, std::string path, service_instance announced, instance_format format);

    struct parts;
    std::shared_ptr<const parts> is_;  // null: nothing is announced
    std::string path_;
};

/// What a process that announces an instance knows of another session's instance with the same id.
enum class predecessor {
    may_live,  ///< nothing
    is_dead,   ///< it has died, and its session has not ended yet. Its node is removed, once, as Curator does each
               ///< time. If it lives after all, it announces itself again, and announce() waits
};

/// A registry of services: processes announce the services that they offer, and clients look them up. Corresponds to
/// Curator's ServiceDiscovery, with the same nodes, `<base>/<name>/<id>`, and the same JSON in them. For continuous use
/// of a service, use a provider. Nodes of other programs, with other data: registry_options::format().
///
/// A handle: copies refer to the same registry. The awaitables that the members return own all they need. A moved-from
/// registry refuses everything with errc::invalid_argument.
class ZKASIO_EXPORT registry {
public:
    /// @param base of all services. The base and the nodes of services are created as containers if they are missing,
    /// as Curator does. Throws errc::invalid_path.
    registry(client zk, std::string base, registry_options options = registry_options());

    /// *Completes when* the instance can be found: its node exists. If another session has a node of that id,
    /// announce() waits until that node is gone: a process that starts again under the same id waits until the session
    /// of its predecessor has ended, unless predecessor::is_dead is given. announce() also waits if an ephemeral node
    /// exists and the type wants none, or the other way round. A service_type::fixed or permanent instance takes over a
    /// node that already exists, and writes its data into that node.
    /// *Fails with* errc::invalid_path for a name or an id that is not a valid node name; with what the format fails
    /// with, as service_instance::to_json(); as persistent_node::created().
    /// *Cancellation* leaves no node behind; the removal goes on in the background.
    asio::awaitable<announcement> announce(service_instance is, predecessor before = predecessor::may_live) const;

    /// The names of all services, sorted; a service may have no instance at the moment. Empty if the base does not
    /// exist.
    /// *Fails with* what operations fail with.
    asio::awaitable<std::vector<std::string>> names() const;

    /// The instances of a service, as a server knows them: first listed, then read one by one. Empty if there is no
    /// such service.
    /// *Fails with* errc::invalid_path, and what operations fail with.
    asio::awaitable<service_view> instances(std::string name) const;

    /// One instance of a service, as a server knows it; nothing if there is none.
    /// *Fails with* errc::invalid_path; with what the format fails with for a node that is no instance, as
    /// service_instance::from_json(); and what operations fail with.
    /// @param id of the instance. For service_type::dynamic_sequential, the name of its node.
    asio::awaitable<std::optional<service_instance>> instance(std::string name, std::string id) const;

    const std::string& base() const noexcept { return base_; }

private:
    friend class provider;
    client zk_;
    std::string base_;
    registry_options options_;
};

}  // namespace zkasio
