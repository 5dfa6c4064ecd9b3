#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/announcement.hpp>
#include <zkasio/discovery/registry_options.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/discovery/service_view.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>
#include <vector>

namespace zkasio {

/// What a process that announces an instance knows of another session's instance with the same id.
enum class predecessor {
    may_live,  ///< nothing
    is_dead,   ///< it has died, and its session has not ended yet. Its node is removed, once, as Curator does each
               ///< time. If it lives after all, it announces itself again, and announce() waits
};

/// A registry of services: processes announce the services that they offer, and clients look them up. Corresponds to
/// Curator's ServiceDiscovery, with the same nodes, `<base>/<name>/<id>`, and the same JSON in them. For continuous use
/// of a service, use a provider.
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
    /// *Fails with* errc::invalid_path for a name or an id that is not a valid node name; as
    /// service_instance::to_json(); as persistent_node::created().
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
    /// *Fails with* errc::invalid_path; as service_instance::from_json() for a node that is no instance; and what
    /// operations fail with.
    /// @param id of the instance. For service_type::dynamic_sequential, the name of its node.
    asio::awaitable<std::optional<service_instance>> instance(std::string name, std::string id) const;

    const std::string& base() const noexcept { return base_; }

private:
    client zk_;
    std::string base_;
    registry_options options_;
};

}  // namespace zkasio
