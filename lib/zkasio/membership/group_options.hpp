#pragma once

#include <zkasio/acl.hpp>

#include <utility>

namespace zkasio {

/// How the members of a group are represented by nodes. All programs that share a group use the same.
enum class group_names {
    curator,              ///< `<id>` with data of the member's own: Curator's GroupMember
    kazoo_party,          ///< `<32 hex digits>__party__`, whose data is the id: kazoo's Party
    kazoo_shallow_party,  ///< `<32 hex digits>-<id>`: kazoo's ShallowParty
    /// As kazoo_shallow_party, with data of the member's own, which kazoo does not read: the members of a partitioner.
    /// The data of kazoo's own members are their ids.
    kazoo_shallow_party_with_data,
};

/// Whether members have data that the others see; otherwise, data are refused.
constexpr bool has_member_data(group_names names) noexcept {
    return names == group_names::curator || names == group_names::kazoo_shallow_party_with_data;
}

class group_options {
public:
    group_options() {}
    /// group_names::curator by default.
    group_options& names(group_names n) { names_ = n; return *this; }
    /// The ACL of the member's node and of directories created for it (client_options::default_acl()). It must let the
    /// other members read it.
    group_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }

    group_names names() const noexcept { return names_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    group_names names_ = group_names::curator;
    zkasio::acl acl_ = default_acl();
};

}  // namespace zkasio
