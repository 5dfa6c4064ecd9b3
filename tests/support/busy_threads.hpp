#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace zkasio::test {

/// Three threads, each with a copy of `f`, which it calls again and again until end().
class busy_threads {
public:
    template <class F>
    explicit busy_threads(F f) {
        for (int i = 0; i < 3; ++i)
            threads_.emplace_back([this, f]() mutable {
                while (!ended_) f();
            });
    }
    busy_threads(const busy_threads&) = delete;
    busy_threads& operator=(const busy_threads&) = delete;
    ~busy_threads() { end(); }

    void end() {
        ended_ = true;
        for (std::thread& t : threads_) t.join();
        threads_.clear();
    }

private:
    std::atomic<bool> ended_{false};
    std::vector<std::thread> threads_;
};

}  // namespace zkasio::test
