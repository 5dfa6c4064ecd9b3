#include <zkasio/coroutines/async.hpp>

#include <zkasio/detail/base/run_cancellable.hpp>

namespace zkasio::detail {

std::error_code code_of_async(const std::exception_ptr& failed) {
    if (!failed) return {};
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {
        return e.code();
    }
}

async_run::async_run(const asio::any_io_executor& on)
    : run_(std::make_shared<body_run>(strand_over(on, body_strand::callers))) {}

asio::any_io_executor async_run::strand() const { return run_->strand; }
asio::cancellation_slot async_run::slot() const { return run_->signal.slot(); }
async_run::cancel_function async_run::canceller() const { return body_run::canceller(run_); }
asio::awaitable<void> async_run::run(body_function body) const { return run_body(run_, std::move(body)); }

}  // namespace zkasio::detail
