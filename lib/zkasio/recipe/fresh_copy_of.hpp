#pragma once

#include <zkasio/export.hpp>

#include <exception>

namespace zkasio {

/// The exception for one of several callers that fail for the same reason: their threads should not share one exception
/// object. An exception that is no std::system_error and no std::bad_alloc is not copied. Null for null. For writers of
/// recipes.
ZKASIO_EXPORT std::exception_ptr fresh_copy_of(const std::exception_ptr& failed);

}  // namespace zkasio
