#pragma once

#include <atomic>

namespace zkasio::detail {

/// Remembers the process in which it was made: a client's resources belong to that process, not to its forked children.
///
/// Counts fork() in a handler of pthread_atfork(), so that forked() costs nothing; a child of vfork(), posix_spawn() or
/// clone() has to exec.
class fork_mark {
public:
    fork_mark() noexcept;

    /// Whether this process is a child of the process in which the object was made.
    bool forked() const noexcept { return made_in_ != generation_.load(std::memory_order_relaxed); }

private:
    static std::atomic<unsigned> generation_;
    unsigned made_in_;
};

}  // namespace zkasio::detail
