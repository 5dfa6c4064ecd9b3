#pragma once

#include <exception>

namespace zkasio::lock_detail {

/// For one of several contenders that fail for the same reason, on threads of their own: an exception is nothing to
/// share.
std::exception_ptr copy_of(const std::exception_ptr& failed);

}  // namespace zkasio::lock_detail
