#pragma once

#include <zkasio/acl.hpp>

#include <optional>
#include <vector>

/// The rules of servers for ACLs: the schemes world, auth, digest and ip. No input, no output.
namespace zkasio::testing_detail {

/// The identities of a connection, without world:anyone, which every connection has.
using identities = std::vector<acl_id>;

/// Whether one of the `wanted` permissions is granted; permission::none always is.
/// @param entries empty: all permissions for every connection
bool permits(const acl& entries, permission wanted, const identities& who);

/// The ACL that a server stores for the ACL given by a client: "auth:" stands for the client's own identities, and an
/// ACL that grants everything to every connection is stored as an empty one. std::nullopt: the ACL is not valid.
std::optional<acl> as_kept(const acl& given, const identities& who);

/// The ACL that a server shows for a stored ACL.
/// @param secrets with hashed passwords
acl as_shown(const acl& kept, bool secrets);

}  // namespace zkasio::testing_detail
