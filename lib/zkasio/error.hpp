#pragma once

#include <zkasio/export.hpp>

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace zkasio {

/// The error codes of a ZooKeeper server and of ZooKeeper's C client. The values are those of the C client.
enum class zk_errc {
    ok = 0,
    system_error = -1,
    runtime_inconsistency = -2,
    data_inconsistency = -3,
    connection_loss = -4,
    marshalling_error = -5,
    unimplemented = -6,
    operation_timeout = -7,
    bad_arguments = -8,
    invalid_state = -9,
    new_config_no_quorum = -13,
    reconfig_in_progress = -14,
    no_node = -101,
    no_auth = -102,
    bad_version = -103,
    no_children_for_ephemerals = -108,
    node_exists = -110,
    not_empty = -111,
    session_expired = -112,
    invalid_callback = -113,
    invalid_acl = -114,
    auth_failed = -115,
    closing = -116,
    session_moved = -118,
    not_read_only = -119,
    ephemeral_on_local_session = -120,
    no_watcher = -121,
    reconfig_disabled = -123,
    session_requires_sasl = -124,
    quota_exceeded = -125,
    throttled = -127,
};

/// The error codes of zkasio itself.
enum class errc {
    session_expired = 1,  ///< the session of the operation is over
    client_closed,        ///< `close()` was called
    not_connected,        ///< no connection in time; the request was never sent
    lock_lost,            ///< the lock is lost
    lock_released,        ///< the guard was released, or never held a lock
    invalid_path,         ///< the path breaks ZooKeeper's rules
    invalid_argument,     ///< an argument is out of its range
    too_large,            ///< the request is above the 1 MiB limit of a server
    foreign_child,        ///< a lock directory has a child that is no contender
    would_deadlock,       ///< the caller holds the lock already, and would wait for itself
    revoked,              ///< the lock was asked back, and the work under it cancelled
    forked,               ///< in a child process: client and session belong to the parent, see client
    timed_out,  ///< the limit of a timeout() has passed. Not condition::cancelled: the caller has cancelled nothing.
                ///< Not condition::retryable: the caller that has set the limit decides whether to wait longer
    too_many_members,  ///< as many members as are allowed are inside already, see double_barrier_options::exactly()
    too_many_ephemerals,  ///< see client_options::ephemeral_budget(). Not condition::retryable: make room yourself
};

/// Classes of error codes, for callers to compare with: `if (e.code() == condition::retryable)`.
enum class condition {
    retryable = 1,    ///< a repeated call may succeed later on this session
    outcome_unknown,  ///< the request had been sent: a write may or may not have been applied. The end of the session,
                      ///< close() and a cancellation may come before or after the sending: then only
                      ///< error::outcome_unknown() tells
    session_ended,    ///< expired, refused, closed, or left behind by fork(): nothing of this session will work again
    cancelled,        ///< the caller cancelled the operation (also asio::error::operation_aborted)
};

ZKASIO_EXPORT const std::error_category& zookeeper_category() noexcept;
ZKASIO_EXPORT const std::error_category& zkasio_category() noexcept;
ZKASIO_EXPORT const std::error_category& condition_category() noexcept;

inline std::error_code make_error_code(zk_errc e) noexcept { return {static_cast<int>(e), zookeeper_category()}; }
inline std::error_code make_error_code(errc e) noexcept { return {static_cast<int>(e), zkasio_category()}; }
inline std::error_condition make_error_condition(condition c) noexcept {
    return {static_cast<int>(c), condition_category()};
}

/// A failed operation: "create /locks/orders: no permission".
///
/// `what()` names the operation, the path and the reason, and what to do where that is known.
class ZKASIO_EXPORT error : public std::system_error {
public:
    /// @param hint further information: the offending argument, the last connection failure, what to do.
    error(std::error_code code, std::string_view operation, std::string_view path = {}, std::string_view hint = {},
          bool outcome_unknown = false);

    const char* what() const noexcept override { return text_->what.c_str(); }
    const std::string& operation() const noexcept { return text_->operation; }
    const std::string& path() const noexcept { return text_->path; }
    /// The constructor's hint, which what() shows in brackets.
    const std::string& hint() const noexcept { return text_->hint; }

    /// True when a write had been sent and its answer was not seen (connection lost, or the caller cancelled the wait):
    /// the write may or may not have been applied. Also true for the error of a function that has cancelled a body with
    /// such a write, or whose last body has ended with one: with_lock(), lead(), with_task_scope(), timeout() and all
    /// others that run a body; the code is the reason (errc::lock_lost, errc::session_expired ...), and the hint tells
    /// of the body's write. A cancelled `a() && b()`, or `a() || b()`, counts as such a write: Asio keeps the exception
    /// of a() only.
    bool outcome_unknown() const noexcept { return outcome_unknown_; }

    /// Of zk_errc::connection_loss: five connections in a row have ended with this request. So the servers hang up at
    /// it, most often because it is larger than their jute.maxbuffer, and there is no use in a repetition. The hint
    /// tells its size.
    bool hung_up() const noexcept { return text_->bytes > 0; }

    // For writers of recipes:
    /// An error with hung_up(). @param bytes of the request.
    static error hung_up_at(std::string_view operation, std::string_view path, std::size_t bytes, bool outcome_unknown);
    /// The same error without outcome_unknown(), when a look at the nodes has shown that the write was not applied. An
    /// operation that repeats a write whose outcome is unknown fails with it instead, if it has hung_up().
    error not_applied() const;
    /// The same error of another operation, on another path.
    error renamed(std::string_view operation, std::string_view path) const;

private:
    struct text {
        std::string operation, path, hint, what;
        std::size_t bytes = 0;  // of a request at which the servers hang up
    };
    error& is_of(std::size_t bytes);

    std::shared_ptr<const text> text_;  // shared: copying an exception must not throw
    bool outcome_unknown_;
};

// ---------------------------------------------------------------------------------------- for writers of recipes

/// Whether `thrown`, or one nested in it, has outcome_unknown(), or is asio::multiple_exceptions, which hides another.
ZKASIO_EXPORT bool leaves_outcome_unknown(const std::exception_ptr& thrown) noexcept;

/// The error `e` with outcome_unknown(), for a caller that does not see the exception of the interrupted write itself.
/// @param hint follows the hint of `e`: whose write it was.
ZKASIO_EXPORT error with_outcome_unknown(const error& e, std::string_view hint);

/// Throws `e`, with outcome_unknown() if a write of the body may have been applied. If the exception `body` is more
/// than a cancellation, it is nested in `e` (std::nested_exception), where std::rethrow_if_nested() finds it.
/// @param body null: the body has ended without an exception.
[[noreturn]] ZKASIO_EXPORT void throw_with_body_failure(error e, std::exception_ptr body);

/// In a catch block of an `operation` on `path` that consists of requests, waits and pauses of other names: throws the
/// same error, with its hint and its outcome_unknown(), under the name of this operation. What is about the whole (the
/// end of the session or of the client, no connection, a time limit, a cancellation) gets `path`; other errors keep the
/// path of the node that is concerned. So does the cancellation of a timer, which is a plain std::system_error. Other
/// exceptions are rethrown unchanged.
[[noreturn]] ZKASIO_EXPORT void rethrow_as(std::string_view operation, std::string_view path);

}  // namespace zkasio

template <>
struct std::is_error_code_enum<zkasio::zk_errc> : std::true_type {};
template <>
struct std::is_error_code_enum<zkasio::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<zkasio::condition> : std::true_type {};
