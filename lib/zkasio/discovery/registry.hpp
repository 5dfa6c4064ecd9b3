#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/discovery/announcement.hpp>
#include <zkasio/discovery/registry_options.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/discovery/service_view.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

namespace zkasio {

/// Where processes say which services they offer, and others look: what Curator's ServiceDiscovery is, with the same
/// nodes, `<base>/<name>/<id>`, and the same JSON in them. Who uses a service all the time takes a provider.
///
/// A handle: copies speak of the same. What the members return takes along what it needs. One that was moved from
/// refuses everything with errc::invalid_argument.
class ZKASIO_EXPORT registry {
public:
    /// @param base of all services; it, and the nodes of services, are created as containers where they are missing, as
    /// Curator does. Throws errc::invalid_path.
    registry(client zk, std::string base, registry_options options = registry_options());

    /// *Completes when* the instance can be found: its node stands. Where another session has a node of that id, it
    /// waits until that is gone (Curator removes it): a process that starts again under the same id waits until the
    /// session of its predecessor has ended. So it does where a node is ephemeral and the type wants none, or the other
    /// way round. A service_type::fixed or permanent instance takes over a node that stands there already, and writes
    /// itself into it.
    /// *Fails with* errc::invalid_path for a name or an id that is no name of a node, as service_instance::to_json(),
    /// as persistent_node::created(). *Cancellation*: leaves no node behind; that goes on in the background.
    asio::awaitable<announcement> announce(service_instance is) const;

    /// Of all services, in order; of some there may be no instance at the moment. None where there is no base.
    /// *Fails with* what operations fail with.
    asio::awaitable<std::vector<std::string>> names() const;

    /// The instances of a service, as a server knows them: read one by one, behind a listing of them. None where there
    /// is no such service. *Fails with* errc::invalid_path, and what operations fail with.
    asio::awaitable<service_view> instances(std::string name) const;

    const std::string& base() const noexcept { return base_; }

private:
    client zk_;
    std::string base_;
    registry_options options_;
};

}  // namespace zkasio
