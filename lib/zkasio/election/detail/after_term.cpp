#include <zkasio/election/detail/after_term.hpp>

#include <zkasio/error.hpp>

#include <system_error>

namespace zkasio::election_detail {
namespace {

// Whether the loss of a session or a connection explains the exception: operations fail with zkasio::error, and waits
// are cancelled.
bool explained_by_loss(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const error&) {
        return true;
    } catch (const std::system_error& e) {
        return e.code() == condition::cancelled;
    } catch (...) {
        return false;
    }
}

// Whether a lost connection explains the exception: only a request has failed, and the leadership goes on. The code
// decides: any failure may have error::outcome_unknown(), of a write that it has interrupted, and may last. Only a
// limit of the body's own hides the code of the write.
bool explained_by_connection(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::system_error& e) {
        if (e.code() == condition::session_ended) return false;
        const auto* ours = dynamic_cast<const error*>(&e);
        return e.code() == condition::retryable || e.code() == condition::outcome_unknown ||
               (e.code() == errc::timed_out && ours && ours->outcome_unknown());
    } catch (...) {
        return false;
    }
}

}  // namespace

after_term decide(const term_end& end, const lead_options& how) {
    if (end.failure && end.lost() && explained_by_loss(end.failure)) return after_term::stand_again;
    if (end.failure)
        return explained_by_connection(end.failure) && !how.fails_with_connection() ? after_term::pause_and_stand_again
                                                                                    : after_term::fail;
    return end.lost() || how.requeues() ? after_term::stand_again : after_term::complete;
}

bool tells_of_loss(const std::exception_ptr& thrown, std::string_view path) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const error& e) {
        return e.code() == errc::lock_lost && e.path() == path;
    } catch (...) {
    }
    return false;
}

std::exception_ptr failure_in_loss(std::exception_ptr thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const error& e) {
        if (e.code() != errc::lock_lost) return thrown;
        try {
            std::rethrow_if_nested(e);
        } catch (...) {
            return std::current_exception();
        }
        return nullptr;
    } catch (...) {
        return thrown;
    }
}

}  // namespace zkasio::election_detail
