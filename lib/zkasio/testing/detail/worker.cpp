#include <zkasio/testing/detail/worker.hpp>

#include <future>

namespace zkasio::testing_detail {

worker::~worker() {
    std::deque<job_ptr> left;
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        left = std::exchange(jobs_, {});
        if (at_work_) left.push_back(at_work_);
    }
    changed_.notify_one();
    for (const job_ptr& job : left) job->cancel();
    if (thread_.joinable()) thread_.join();
}

void worker::begin(job_ptr job) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
    jobs_.push_back(std::move(job));
    changed_.notify_one();
}

void worker::run(const background_job::work_function& work) {
    const auto done = std::make_shared<std::promise<void>>();
    auto result = done->get_future();
    const auto job = std::make_shared<background_job>([done](std::exception_ptr failed) {
        if (failed)
            done->set_exception(failed);
        else
            done->set_value();
    });
    job->work = work;
    begin(job);
    result.get();
}

void worker::loop() {
    for (;;) {
        job_ptr job;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
            if (ending_) return;
            job = at_work_ = std::move(jobs_.front());
            jobs_.pop_front();
        }
        std::exception_ptr failed;
        try {
            if (!job->cancelled()) job->work(job->cancelled());
        } catch (...) {
            failed = std::current_exception();
        }
        job->end(failed);
        const std::lock_guard lock(mutex_);
        at_work_.reset();
    }
}

}  // namespace zkasio::testing_detail
