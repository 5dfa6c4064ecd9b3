#pragma once

#include <exception>

namespace zkasio::detail {

/// Whether the exception says that its thrower was cancelled.
bool is_cancellation(const std::exception_ptr& thrown) noexcept;

/// The cancellation with error::outcome_unknown(). In error.cpp, as it makes an error.
std::exception_ptr of_unknown_outcome(std::exception_ptr cancellation);

/// The exception of a cancelled coroutine. If it was Asio's `a() || b()` or `a() && b()`, and both have thrown,
/// `thrown` is asio::multiple_exceptions: then the first of the two exceptions, if that is a cancellation, with
/// error::outcome_unknown(), because the second one is not seen.
std::exception_ptr single_cancellation(std::exception_ptr thrown) noexcept;

}  // namespace zkasio::detail
