#include <zkasio/detail/base/fork_mark.hpp>

#include <pthread.h>

namespace zkasio::detail {

std::atomic<unsigned> fork_mark::generation_{0};

fork_mark::fork_mark() noexcept {
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { generation_.fetch_add(1, std::memory_order_relaxed); });
    (void)registered;
    made_in_ = generation_.load(std::memory_order_relaxed);
}

}  // namespace zkasio::detail
