#pragma once

#include <mutex>

#include <unistd.h>

namespace zkasio::lock_detail {

/// A mutex for which a child process does not wait: a thread of its parent may have had it at the fork, and no thread
/// of the child will ever release it.
class process_mutex {
public:
    /// Owns nothing in a child process, if a thread of the parent had the mutex: what it guards is then not to be used.
    std::unique_lock<std::mutex> lock() const {
        std::unique_lock<std::mutex> mine(mutex_, std::try_to_lock);
        if (!mine && made_in_ == ::getpid()) mine.lock();
        return mine;
    }

private:
    mutable std::mutex mutex_;
    const pid_t made_in_ = ::getpid();
};

}  // namespace zkasio::lock_detail
