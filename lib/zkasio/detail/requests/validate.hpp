#pragma once

#include <zkasio/detail/seam/backend.hpp>

namespace zkasio::detail {

/// Throws zkasio::error for a request that no server would accept, or that would harm the C client, before it is sent.
/// @param chroot_length in bytes: the C client prepends the chroot to each path. Below one, "/zookeeper" is a node like
/// any other.
/// @param operation what messages call it; "": operation_name().
/// @param checks of a transaction: that many of its steps, the first, are not the caller's own, and are not counted.
void validate(const request& r, std::size_t chroot_length, std::string_view operation = {}, std::size_t checks = 0);

/// The same of a node that will be asked for.
void validate_path(std::string_view path, std::size_t chroot_length, std::string_view operation);

}  // namespace zkasio::detail
