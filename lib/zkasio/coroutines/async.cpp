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
async_run::cancel_function async_run::canceller() const {
    return [weak = std::weak_ptr<body_run>(run_)](asio::cancellation_type how) {
        if (const auto run = weak.lock()) body_run::cancel(run, how);
    };
}
void async_run::rethrow(std::exception_ptr failed) const {
    std::rethrow_exception(run_->cancelled ? single_cancellation(std::move(failed)) : failed);
}
asio::awaitable<void> async_run::begin() const { return obey_cancellations(run_); }

}  // namespace zkasio::detail
