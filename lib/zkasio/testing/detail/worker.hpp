#pragma once

#include <zkasio/testing/background_job.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace zkasio::testing_detail {

/// A thread that does one job after another, in the order of the calls. The thread starts with the first job.
/// Thread-safe.
class worker {
public:
    worker() = default;
    /// Cancels all jobs, and waits for the one that is under way.
    ~worker();
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    void begin(job_ptr job);
    /// Does the work on the thread, and blocks until it is done. Throws what `work` throws.
    void run(const background_job::work_function& work);

private:
    void loop();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<job_ptr> jobs_;
    job_ptr at_work_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace zkasio::testing_detail
