#include <zkasio/testing/background_job.hpp>

#include <asio/error.hpp>

#include <system_error>

namespace zkasio::testing_detail {

void background_job::end(std::exception_ptr failed) {
    if (ended_.exchange(true)) return;
    const auto told = std::exchange(on_end_, nullptr);
    told(std::move(failed));
}

void background_job::cancel() {
    cancelled_ = true;
    end(std::make_exception_ptr(std::system_error(std::error_code(asio::error::operation_aborted))));
}

}  // namespace zkasio::testing_detail
