#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

/// Common parts of the async_ functions of zkasio::testing.
namespace zkasio::testing_detail {

/// A job that a thread of the kit carries out while the caller waits on another executor.
class background_job {
public:
    /// Blocks, and checks `cancelled` now and then: true when the caller no longer waits.
    using work_function = std::function<void(const std::atomic<bool>& cancelled)>;

    explicit background_job(std::function<void(std::exception_ptr)> on_end) : on_end_(std::move(on_end)) {}
    background_job(const background_job&) = delete;
    background_job& operator=(const background_job&) = delete;

    /// Resumes the caller, with `failed` if not null. Only the first end() or cancel() resumes it. From any thread.
    ZKASIO_EXPORT void end(std::exception_ptr failed);
    /// Sets cancelled(), and resumes the caller with asio::error::operation_aborted.
    ZKASIO_EXPORT void cancel();
    const std::atomic<bool>& cancelled() const noexcept { return cancelled_; }

    work_function work;

private:
    std::function<void(std::exception_ptr)> on_end_;
    std::atomic<bool> ended_{false}, cancelled_{false};
};

using job_ptr = std::shared_ptr<background_job>;

template <class Handler, class Executor>
struct waiting_handler {
    waiting_handler(Handler h, const Executor& e) : handler(std::move(h)), work(e) {}
    Handler handler;
    asio::executor_work_guard<Executor> work;
};

/// Makes a job. At its end, `finish(handler, failed)` is called on the handler's executor. The handler's cancellation
/// cancels the job.
template <class Handler, class Finish>
job_ptr make_job(Handler handler, Finish finish) {
    const auto executor = asio::get_associated_executor(handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    using executor_type = std::remove_const_t<decltype(executor)>;
    const auto waiting = std::make_shared<waiting_handler<Handler, executor_type>>(std::move(handler), executor);
    const auto job = std::make_shared<background_job>([waiting, executor, slot, finish](std::exception_ptr failed) {
        asio::post(executor, [waiting, slot, finish, failed]() mutable {
            if (slot.is_connected()) slot.clear();
            Handler resumed = std::move(waiting->handler);
            waiting->work.reset();
            finish(resumed, failed);
        });
    });
    if (slot.is_connected())
        slot.assign([weak = std::weak_ptr(job)](asio::cancellation_type) {
            if (const job_ptr j = weak.lock()) j->cancel();
        });
    return job;
}

}  // namespace zkasio::testing_detail
