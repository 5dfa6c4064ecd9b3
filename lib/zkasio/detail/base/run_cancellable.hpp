#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/strand.hpp>

#include <functional>
#include <memory>

namespace zkasio::detail {

/// A coroutine that runs on a strand of its own and can be cancelled from other executors.
///
/// co_spawn and cancellation_signal must not be used from two threads at once (Asio 1.22.1), so all that touches them
/// happens on that strand.
class body_run {
public:
    explicit body_run(asio::strand<asio::any_io_executor> s) : strand(std::move(s)) {}

    /// From any thread; without effect once the body has ended.
    static void cancel(const std::shared_ptr<body_run>& run,
                       asio::cancellation_type how = asio::cancellation_type::terminal);
    /// The same on the strand.
    void cancel_now(asio::cancellation_type how = asio::cancellation_type::terminal);

    asio::strand<asio::any_io_executor> strand;
    asio::cancellation_signal signal;
    bool cancelled = false, ended = false;
};

/// Where a body runs.
enum class body_strand {
    own,      ///< a new strand over the caller's executor
    callers,  ///< the caller's executor, where that is a strand: the body is part of what the caller does
};

/// Runs `body` over the caller's executor. `arm` is called, on the body's strand, when the body has started: it may
/// arrange for body_run::cancel(). The function that it returns is called on the same strand when the body has ended.
/// The caller's cancellation is passed on, of whichever type the caller has enabled. Throws what the body throws.
using disarm_function = std::function<void()>;
using arm_function = std::function<disarm_function(const std::shared_ptr<body_run>&)>;
asio::awaitable<void> run_cancellable(std::function<asio::awaitable<void>()> body, arm_function arm, body_strand where);

}  // namespace zkasio::detail
