#pragma once

#include <zkasio/detail/base/strand.hpp>
#include <zkasio/detail/telemetry/logger.hpp>

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>

#include <functional>
#include <list>
#include <memory>

namespace zkasio::detail {

/// Coroutines that go on by themselves, on the strand, and that closing waits for. What they throw is logged. On the
/// strand.
class background_tasks {
public:
    background_tasks(strand_type strand, const logger& log) : strand_(std::move(strand)), log_(log) {}

    /// @param keep_alive held until it has ended. @param ended called in a turn of its own when the task is not here
    /// any more.
    void run(asio::awaitable<void> task, std::shared_ptr<void> keep_alive, std::function<void()> ended);

    /// Cancels all (terminally); what they throw from now on is not worth a line.
    void cancel();
    bool empty() const noexcept { return tasks_.empty(); }

    /// Nothing will ever complete: the coroutines are gone, and what kept them is dropped.
    void clear() { tasks_.clear(); }

private:
    void log_failure(const std::exception_ptr& failed) const noexcept;

    strand_type strand_;
    const logger& log_;
    std::list<asio::cancellation_signal> tasks_;
    bool cancelled_ = false;
};

}  // namespace zkasio::detail
