#pragma once

#include <zkasio/acl.hpp>

#include <utility>

namespace zkasio {

class registry_options {
public:
    registry_options() {}  // user-provided: g++ 12 destroys aggregate temporaries of a co_await expression twice
    /// The ACL of the nodes of instances, and of the nodes that are created above them (client_options::default_acl()).
    registry_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }

    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    zkasio::acl acl_ = default_acl();
};

}  // namespace zkasio
