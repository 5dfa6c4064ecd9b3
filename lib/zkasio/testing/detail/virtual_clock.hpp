#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace zkasio::testing_detail {

/// While there is one, time stands still in its thread, but for what is passed here: the clocks (boot_clock,
/// std::chrono::steady_clock, std::chrono::system_clock) are its own, and timers of event loops that are used for the
/// first time by then wait for them. (The program has a clock_gettime(), a timerfd_create() and an epoll_wait() in
/// front of the system's.) Other threads notice nothing.
class virtual_clock {
public:
    /// Throws std::logic_error if this thread has one, std::runtime_error if the system's clock cannot be replaced.
    virtual_clock();
    ~virtual_clock();
    virtual_clock(const virtual_clock&) = delete;
    virtual_clock& operator=(const virtual_clock&) = delete;

    bool is_of_this_thread() const noexcept;
    void pass(std::chrono::nanoseconds time);
    /// Since it began.
    std::chrono::nanoseconds now() const noexcept;

    /// Whatever an event loop of this thread would do with its time: called by epoll_wait() when nothing is ready, with
    /// the time until the next timer (or less; zero: the loop is busy and only looks whether something is ready).
    /// Instead of waiting, the loop then looks once more. Must not throw. Null: loops wait in real time, as ever.
    using waiting = std::function<void(std::chrono::milliseconds)>;
    /// @param f lives until the next call.
    void instead_of_waiting(const waiting* f) noexcept;

private:
    const std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace zkasio::testing_detail
