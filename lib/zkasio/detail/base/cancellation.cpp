#include <zkasio/detail/base/cancellation.hpp>

#include <asio/error.hpp>
#include <asio/multiple_exceptions.hpp>

#include <system_error>

namespace zkasio::detail {

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
