#pragma once

#include <zkasio/detail/base/strand.hpp>
#include <zkasio/detail/telemetry/logger.hpp>

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>

#include <functional>
#include <list>
#include <memory>

namespace zkasio::detail {

/// Detached coroutines on the strand, which closing waits for. Their exceptions are logged. On the strand.
class background_tasks {
public:
    background_tasks(strand_type strand, const logger& log) : strand_(std::move(strand)), log_(log) {}

    /// @param keep_alive held until the task has ended. @param ended called in a turn of its own when the task was
    /// removed from this list.
    void run(asio::awaitable<void> task, std::shared_ptr<void> keep_alive, std::function<void()> ended);

    /// Cancels all tasks (terminally). Their exceptions are not logged from now on.
    void cancel();
    bool empty() const noexcept { return tasks_.empty(); }

private:
    void log_failure(const std::exception_ptr& failed) const noexcept;

    strand_type strand_;
    const logger& log_;
    std::list<asio::cancellation_signal> tasks_;
    bool cancelled_ = false;
};

}  // namespace zkasio::detail
