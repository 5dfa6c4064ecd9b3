#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>

namespace zkasio::testing_detail {

/// While this object exists, time stands still in its thread, except for pass(): the clocks (boot_clock,
/// std::chrono::steady_clock, std::chrono::system_clock, and that of the C library) show the virtual time, and timers
/// wait for it if their event loop is first used in this period. (The program has a clock_gettime(), a timerfd_create()
/// and an epoll_wait() in front of the system's.) Other threads notice nothing.
class virtual_clock {
public:
    /// Throws std::logic_error if this thread has one already, std::runtime_error if the system's clock cannot be
    /// replaced.
    virtual_clock();
    ~virtual_clock();
    virtual_clock(const virtual_clock&) = delete;
    virtual_clock& operator=(const virtual_clock&) = delete;

    bool is_of_this_thread() const noexcept;
    void pass(std::chrono::nanoseconds time);
    /// The virtual time since this object was made.
    std::chrono::nanoseconds now() const noexcept;

    /// Called by epoll_wait() of an event loop of this thread, instead of waiting, when nothing is ready, with the time
    /// until the next timer (or less; zero: the loop is busy and only looks whether something is ready). The loop then
    /// looks once more. Must not throw. Null: loops wait in real time, as usual.
    using waiting = std::function<void(std::chrono::milliseconds)>;
    /// @param f must exist until the next call of instead_of_waiting().
    void instead_of_waiting(const waiting* f) noexcept;

private:
    const std::thread::id thread_ = std::this_thread::get_id();
};

/// An event loop of this thread that looks whether something is ready, and does not wait, finds nothing while
/// `*descriptors` is 0: a system call less for each turn of the loop. For loops whose readable descriptors are all
/// counted there, and that is first used after this call: then its timers need no descriptor. Null: the loop asks the
/// system.
void count_readable(const std::size_t* descriptors) noexcept;

}  // namespace zkasio::testing_detail
