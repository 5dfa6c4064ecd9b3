#pragma once

#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/export.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

namespace discovery_detail {
struct listing;
struct make_service_view;
}  // namespace discovery_detail

/// A node among the instances of a service that is no instance: its name, and why it cannot be used. The name is "" for
/// the directory of the service, if its ACL does not let this client list the directory.
struct unreadable_instance {
    std::string node, why;
};

/// The instances of a service at some moment. Never changes, is cheap to copy, and may be used on any thread. Each
/// instance is the one that its node describes, under the name of the node: as for Curator, a different name or id
/// within the data does not matter.
class ZKASIO_EXPORT service_view {
public:
    /// A view of nothing.
    service_view() noexcept = default;

    /// Rises with each change; 0 in a view of nothing.
    std::uint64_t version() const noexcept;
    /// Whether the view is known to match the servers: there is a connection, and all was read since that connection
    /// began.
    bool current() const noexcept;

    /// The readable instances, in the order of the names of their nodes; also those that provider::pick() leaves out.
    std::vector<service_instance> instances() const;
    /// Calls `f(node, instance)` for each of these instances.
    void for_each(const std::function<void(const std::string& node, const service_instance& instance)>& f) const;
    std::vector<unreadable_instance> unreadable() const;

private:
    friend struct discovery_detail::make_service_view;
    explicit service_view(std::shared_ptr<const discovery_detail::listing> l) noexcept : listing_(std::move(l)) {}
    std::shared_ptr<const discovery_detail::listing> listing_;
};

}  // namespace zkasio
