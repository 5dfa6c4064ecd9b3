#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/types.hpp>

#include <chrono>

namespace zkasio {

/// How `create` treats parents that do not exist.
enum class missing_parents {
    fail,               ///< `create` fails with zk_errc::no_node
    create_persistent,  ///< the parents are created, and stay
    create_container,   ///< the parents are created, and the server removes them when they have become empty
};

/// How a node is created: `create_options{}.mode(create_mode::ephemeral).parents(missing_parents::create_container)`.
class create_options {
public:
    create_options() {}  // user-provided: g++ 12 destroys aggregate temporaries of a co_await expression twice

    create_options& mode(create_mode m) { mode_ = m; return *this; }
    /// The ACL of this node and of parents created with it (client_options::default_acl()).
    create_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }
    /// The time to live, for the two modes that have one: above 0, and at most 0xffffffffff ms.
    create_options& ttl(any_duration t) { ttl_ = t; return *this; }
    create_options& parents(missing_parents p) { parents_ = p; return *this; }
    /// Puts a random id into the name ("_c_<uuid>-name", as Curator does). If the connection is lost before the answer,
    /// the node is found again by this id: the create is then certain to happen once, as long as the session lives.
    create_options& protection(bool on = true) { protection_ = on; return *this; }

    create_mode mode() const noexcept { return mode_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    missing_parents parents() const noexcept { return parents_; }
    bool is_protected() const noexcept { return protection_; }

private:
    create_mode mode_ = create_mode::persistent;
    zkasio::acl acl_ = default_acl();
    std::chrono::milliseconds ttl_{0};
    missing_parents parents_ = missing_parents::fail;
    bool protection_ = false;
};

/// `zk.create("/a/b", data, with_parents())`: a persistent node, and the nodes above it that are missing.
inline create_options with_parents() { return create_options().parents(missing_parents::create_persistent); }

}  // namespace zkasio
