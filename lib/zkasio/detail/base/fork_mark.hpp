#pragma once

#include <atomic>

namespace zkasio::detail {

/// Remembers in which process it was made: what a client owns belongs to that process, not to its forked children.
///
/// Counts fork() by a handler of pthread_atfork(), which costs nothing to ask; a child of vfork(), posix_spawn() or
/// clone() has to exec.
class fork_mark {
public:
    fork_mark() noexcept;

    /// This is a child of the process in which the object was made.
    bool forked() const noexcept { return made_in_ != generation_.load(std::memory_order_relaxed); }

private:
    static std::atomic<unsigned> generation_;
    unsigned made_in_;
};

}  // namespace zkasio::detail
