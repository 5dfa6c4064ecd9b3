#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace zkasio {

/// The exception for one of several callers that fail for the same reason: their threads should not share one exception
/// object. An exception that is no std::system_error is not copied. Null for null. For writers of recipes.
ZKASIO_EXPORT std::exception_ptr fresh_copy_of(const std::exception_ptr& failed);

/// Whether a write has failed because its session is over, and was certainly not applied: then the caller can make the
/// write in the next session, without making it twice. False for an error with error::outcome_unknown(). For writers of
/// recipes.
ZKASIO_EXPORT bool is_for_next_session(const error& failed) noexcept;

/// Throws to a caller what has ended a task that serves several callers: an exception of its own for each, as they may
/// be on different threads. Only the client's close cancels such a task: a cancellation becomes errc::client_closed.
/// For writers of recipes.
/// @param operation of the caller, for errors that name none. @param path as `operation`.
[[noreturn]] ZKASIO_EXPORT void rethrow_to_caller(const std::exception_ptr& why, std::string_view operation,
                                                  std::string_view path);

/// Throws to a caller what has ended the loop of run_in_each_session() behind the caller's object: an exception of its
/// own for each caller. The loop reports the end of the session or of the client in its own name: such an error gets
/// the caller's `operation` and `path`. Other exceptions of the loop are not changed. For writers of recipes.
/// @param outcome_unknown of the caller's own write; the requests of the loop are not the caller's.
[[noreturn]] ZKASIO_EXPORT void rethrow_end_of_loop(const std::exception_ptr& why, std::string_view operation,
                                                    std::string_view path, bool outcome_unknown = false);

/// Awaits `steps` of an `operation` on `path`; their errors are thrown by rethrow_as(). Where a coroutine's frame
/// counts, a catch block does the same without another one. For writers of recipes.
template <class T>
asio::awaitable<T> errors_as(std::string operation, std::string path, asio::awaitable<T> steps) {
    try {
        co_return co_await std::move(steps);
    } catch (const std::system_error&) {
        rethrow_as(operation, path);
    }
}

/// In a catch block of an `operation` on `path` that runs bodies again and again, when the last of them has left the
/// outcome of a write unknown and its exception was dropped: throws the same error with outcome_unknown(). Not for an
/// exception of a body. For writers of recipes.
[[noreturn]] ZKASIO_EXPORT void rethrow_with_write_of_body(std::string_view operation, std::string_view path);

/// In a catch block of an `operation` on `path` that has failed, and leaves nothing behind: throws the same error under
/// the name of the operation. If it was cancelled, or ended by the session or the connection, the request that was
/// under way does not matter: its path, and error::outcome_unknown(), are not told (but for error::hung_up()). For
/// writers of recipes.
[[noreturn]] ZKASIO_EXPORT void rethrow_without_trace(std::string_view operation, std::string_view path);

/// In a catch block around a request that changes nothing for the caller, such as the create of a node: throws the same
/// error without outcome_unknown(), so that the caller's write can be made in the next session.
[[noreturn]] ZKASIO_EXPORT void rethrow_as_not_written();

}  // namespace zkasio
