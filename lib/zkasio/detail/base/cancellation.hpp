#pragma once

#include <exception>

namespace zkasio::detail {

/// Whether that is an exception which says that its thrower was cancelled.
bool is_cancellation(const std::exception_ptr& thrown) noexcept;

/// What somebody has thrown that was cancelled. When that was `a() || b()` or `a() && b()` of Asio's, and both have
/// thrown, it is asio::multiple_exceptions: then the exception of the first of them, if that is a cancellation.
std::exception_ptr single_cancellation(std::exception_ptr thrown) noexcept;

}  // namespace zkasio::detail
