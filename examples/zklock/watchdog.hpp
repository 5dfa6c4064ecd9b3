#pragma once

#include <zkasio/clock.hpp>

#include <sys/types.h>

namespace zklock {

/// A small process that kills a process group when zklock cannot do so itself: because it is stopped (SIGSTOP) or does
/// not come to run when its lease on the lock ends, or because it was killed.
///
/// It shares one page of memory with zklock, in which the group and the deadline stand, and waits for the deadline with
/// a timer that counts the time for which the machine is suspended. A deadline that was moved meanwhile is waited for
/// again. It learns of zklock's end by the end of a socket, and then kills at once. It is in a session of its own, so
/// that nothing that a terminal sends reaches it, and has no file open that zklock has inherited.
class watchdog {
public:
    /// Forks: before there are clients and threads. Throws std::system_error.
    watchdog();
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    /// Ends the process; nothing is killed.
    ~watchdog();

    pid_t id() const noexcept { return pid_; }
    /// Readable when the watchdog has ended, and not before.
    int descriptor() const noexcept { return socket_; }
    /// Has been reaped by somebody else.
    void forget() noexcept { pid_ = -1; }

    /// What guards() next is killed then. From any thread, and after fork().
    void set_deadline(zkasio::boot_clock::time_point t) noexcept;
    /// From now on this group, 0: none. Async-signal-safe: a child calls it for itself before it becomes the command.
    void guard(pid_t group) noexcept;
    /// Whether it has killed the last one that it was given to guard().
    bool has_fired() const noexcept;

private:
    struct page;
    void end() noexcept;
    [[noreturn]] static void run(page& shared, int socket) noexcept;

    page* page_;
    int socket_ = -1;
    pid_t pid_ = -1;
};

}  // namespace zklock
