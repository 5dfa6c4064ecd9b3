#include <zkasio/recipe/errors.hpp>

#include <zkasio/error.hpp>

#include <asio/error.hpp>

#include <system_error>

namespace zkasio {

std::exception_ptr fresh_copy_of(const std::exception_ptr& failed) {
    if (!failed) return nullptr;
    try {
        std::rethrow_exception(failed);
    } catch (const error& e) {
        return std::make_exception_ptr(error(e));
    } catch (const std::system_error& e) {
        return std::make_exception_ptr(std::system_error(e));
    } catch (...) {
        return failed;
    }
}

bool is_for_next_session(const error& failed) noexcept {
    return failed.code() == errc::session_expired && !failed.outcome_unknown();
}

void rethrow_to_caller(const std::exception_ptr& why, std::string_view operation, std::string_view path) {
    try {
        std::rethrow_exception(fresh_copy_of(why));
    } catch (const error& e) {
        if (e.code() != condition::cancelled) throw;
        throw error(errc::client_closed, e.operation(), e.path(), e.hint(), e.outcome_unknown());
    } catch (const std::system_error& e) {  // a pause was cancelled
        if (e.code() != condition::cancelled) throw;
        throw error(errc::client_closed, operation, path);
    }
}

void rethrow_end_of_loop(const std::exception_ptr& why, std::string_view operation, std::string_view path,
                         bool outcome_unknown) {
    try {
        std::rethrow_exception(fresh_copy_of(why));
    } catch (const error& e) {
        if (e.code() != condition::session_ended) throw;
        throw error(e.code(), operation, path, e.hint(), outcome_unknown);
    }
}

void rethrow_with_write_of_body(std::string_view operation, std::string_view path) {
    constexpr std::string_view why = "a write of the body was under way";
    try {
        throw;
    } catch (const error& e) {
        if (e.outcome_unknown()) throw;
        throw with_outcome_unknown(e, why);
    } catch (const std::system_error& e) {  // cancelled between two steps
        if (e.code() != condition::cancelled) throw;
        throw error(e.code(), operation, path, why, true);
    }
}

void rethrow_without_trace(std::string_view operation, std::string_view path) {
    try {
        throw;
    } catch (const error& e) {
        if (e.code() == condition::cancelled) throw error(asio::error::operation_aborted, operation, path);
        if (e.code() == condition::session_ended || (e.code() == condition::retryable && !e.hung_up()))
            throw error(e.code(), operation, path, e.hint());
        rethrow_as(operation, path);
    } catch (const std::system_error& e) {
        if (e.code() != condition::cancelled) throw;
        throw error(asio::error::operation_aborted, operation, path);
    }
}

void rethrow_as_not_written() {
    try {
        throw;
    } catch (const error& e) {
        if (!e.outcome_unknown()) throw;
        throw e.not_applied();
    }
}

}  // namespace zkasio
