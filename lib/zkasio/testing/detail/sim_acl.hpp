#pragma once

#include <zkasio/acl.hpp>

#include <optional>
#include <vector>

/// What servers do with ACLs: the schemes world, auth, digest and ip. No input, no output.
namespace zkasio::testing_detail {

/// As whom a connection may act, beside world:anyone, which counts for everybody.
using identities = std::vector<acl_id>;

/// Whether one of the `wanted` permissions is granted; none of them always is.
/// @param entries none: everybody may do everything
bool permits(const acl& entries, permission wanted, const identities& who);

/// What a server keeps of the ACL that a client gives a node: "auth:" stands for the client's own identities, and
/// nothing is kept of an ACL by which everybody may do everything. std::nullopt: the ACL is not valid.
std::optional<acl> as_kept(const acl& given, const identities& who);

/// What a server shows of it.
/// @param secrets hashed passwords are shown, too
acl as_shown(const acl& kept, bool secrets);

}  // namespace zkasio::testing_detail
