#pragma once

#include <zkasio/detail/seam/backend.hpp>

namespace zkasio::detail {

/// Throws zkasio::error for a request that no server would accept, or that would harm the C client, before it is sent.
/// @param chroot_length in bytes: the C client prepends the chroot to each path. Below a chroot, "/zookeeper" is a node
/// like any other.
/// @param operation the name in messages; "": operation_name().
/// @param checks of a transaction: the first `checks` steps are not the caller's own, and are not counted.
void validate(const request& r, std::size_t chroot_length, std::string_view operation = {}, std::size_t checks = 0);

/// Checks the path of a node for later requests.
void validate_path(std::string_view path, std::size_t chroot_length, std::string_view operation);

}  // namespace zkasio::detail
