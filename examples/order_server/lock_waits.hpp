#pragma once

#include <zkasio/client_observer.hpp>

#include <chrono>
#include <mutex>
#include <vector>

namespace order_server {

/// How long requests have waited for locks lately.
class lock_waits final : public zkasio::client_observer {
public:
    void lock_wait(const zkasio::lock_wait_report& w) override;

    struct summary {
        double half_ms = 0, most_ms = 0;  ///< half of them, and 95 of 100, were not longer
    };
    /// Of those that were granted since the last call.
    summary take();

private:
    std::mutex mutex_;  // the observer is called on a thread of its own
    std::vector<std::chrono::nanoseconds> waits_;
};

}  // namespace order_server
