#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/types.hpp>

#include <chrono>
#include <utility>

namespace zkasio {

/// How a persistent_node is created, each time.
class persistent_node_options {
public:
    persistent_node_options() {}  // user-provided: g++ 12 destroys aggregate temporaries of a co_await expression twice

    /// Any mode (create_mode::ephemeral). A sequential node always gets a protected name, "_c_<uuid>-name0000000007":
    /// without such a name the node could not be found again when the answer to its create is lost.
    persistent_node_options& mode(create_mode m) { mode_ = m; return *this; }
    /// For the modes with a time to live: how long the node stays when no client keeps it, see create_options::ttl().
    /// Use a second or more: the node is written to twice in that time, and ten times a second at most.
    persistent_node_options& ttl(any_duration t) { ttl_ = t; return *this; }
    /// The ACL of the node and of parents created with it (client_options::default_acl()).
    persistent_node_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }
    /// How missing parents are treated (missing_parents::create_container).
    persistent_node_options& parents(missing_parents p) { parents_ = p; return *this; }

    create_mode mode() const noexcept { return mode_; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    missing_parents parents() const noexcept { return parents_; }

private:
    create_mode mode_ = create_mode::ephemeral;
    std::chrono::milliseconds ttl_{0};
    zkasio::acl acl_ = default_acl();
    missing_parents parents_ = missing_parents::create_container;
};

}  // namespace zkasio
