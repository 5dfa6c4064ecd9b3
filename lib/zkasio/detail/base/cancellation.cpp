#include <zkasio/detail/base/cancellation.hpp>

#include <zkasio/error.hpp>

#include <asio/error.hpp>
#include <asio/multiple_exceptions.hpp>

#include <system_error>

namespace zkasio::detail {
namespace {

// The cancellation with error::outcome_unknown().
std::exception_ptr of_unknown_outcome(std::exception_ptr cancellation) {
    constexpr const char* why = "the other operation of && or || may have been a write";
    try {
        std::rethrow_exception(cancellation);
    } catch (const error& e) {
        if (e.outcome_unknown()) return cancellation;
        return std::make_exception_ptr(with_outcome_unknown(e, why));
    } catch (const std::system_error& e) {  // of a timer
        return std::make_exception_ptr(error(e.code(), "wait", {}, why, true));
    }
}

}  // namespace

bool is_cancellation(const std::exception_ptr& thrown) noexcept {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::system_error& e) {
        return e.code() == asio::error::operation_aborted;
    } catch (...) {
        return false;
    }
}

std::exception_ptr single_cancellation(std::exception_ptr thrown) noexcept {
    try {
        std::rethrow_exception(thrown);
    } catch (const asio::multiple_exceptions& both) {
        std::exception_ptr first = both.first_exception();
        if (first && is_cancellation(first)) return of_unknown_outcome(std::move(first));
    } catch (...) {
    }
    return thrown;
}

}  // namespace zkasio::detail
