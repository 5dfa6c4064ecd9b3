#pragma once

#include <zkasio/detail/backend.hpp>

namespace zkasio::detail {

/// Throws zkasio::error for a request that no server would accept, or that would harm the C client, before it is sent.
/// @param has_chroot below a chroot "/zookeeper" is a node like any other.
void validate(const request& r, bool has_chroot);

}  // namespace zkasio::detail
