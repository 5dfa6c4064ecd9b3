#pragma once

#include <exception>

namespace zkasio::lock_detail {

/// The exception for one of several contenders that fail for the same reason: their threads should not share one
/// exception object.
std::exception_ptr copy_of(const std::exception_ptr& failed);

}  // namespace zkasio::lock_detail
