#pragma once

#include <exception>
#include <string_view>

namespace zkasio::counter_detail {

/// Throws to a caller what has ended a task that serves several callers: an exception of its own for each, as they may
/// be on different threads. Only the client's close cancels such a task: a cancellation becomes errc::client_closed.
/// @param operation, @param path of the caller, for errors that name none.
[[noreturn]] void rethrow_to_caller(const std::exception_ptr& why, std::string_view operation, std::string_view path);

/// In a catch block around a request that writes no number, such as the create of the node: throws the same error
/// without outcome_unknown(), so that the addition can be made in the next session.
[[noreturn]] void rethrow_as_not_written();

}  // namespace zkasio::counter_detail
