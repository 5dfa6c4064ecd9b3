#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>

#include <exception>
#include <functional>
#include <memory>

namespace zkasio::detail {

/// Whether the exception says that its thrower was cancelled.
bool is_cancellation(const std::exception_ptr& thrown) noexcept;

/// The cancellation with error::outcome_unknown(). In error.cpp, as it makes an error.
std::exception_ptr of_unknown_outcome(std::exception_ptr cancellation);

/// The exception of a cancelled coroutine. If it was Asio's `a() || b()` or `a() && b()`, and both have thrown,
/// `thrown` is asio::multiple_exceptions: then the first of the two exceptions, if that is a cancellation, with
/// error::outcome_unknown(), because the second one is not seen.
std::exception_ptr single_cancellation(std::exception_ptr thrown) noexcept;

/// A coroutine that runs on a strand of its own and can be cancelled from other executors.
///
/// co_spawn and cancellation_signal must not be used from two threads at once (Asio 1.22.1), so all that touches them
/// happens on that strand.
class body_run {
public:
    explicit body_run(asio::any_io_executor s) : strand(std::move(s)) {}

    /// From any thread; without effect once the body has ended.
    static void cancel(const std::shared_ptr<body_run>& run,
                       asio::cancellation_type how = asio::cancellation_type::terminal);
    /// cancel(), for a signal that may live longer than the execution context, which the strand must not.
    static std::function<void(asio::cancellation_type)> canceller(const std::shared_ptr<body_run>& run);
    /// Like cancel(), at once; on the strand.
    void cancel_now(asio::cancellation_type how = asio::cancellation_type::terminal);

    asio::any_io_executor strand;
    asio::cancellation_signal signal;
    bool cancelled = false, ended = false;
};

/// The strand on which a body runs.
enum class body_strand {
    own,      ///< a new strand over the caller's executor
    callers,  ///< the caller's executor, if it is a strand: the body runs as part of the caller
};

asio::any_io_executor strand_over(const asio::any_io_executor& caller, body_strand where);

/// What co_spawn runs on the strand of the run: `body`, which obeys a cancellation of any type, unless the run was
/// cancelled before. Throws what the body throws; if it was cancelled, single_cancellation().
asio::awaitable<void> run_body(std::shared_ptr<body_run> run, std::function<asio::awaitable<void>()> body);

/// Runs `body` over the caller's executor. `arm` is called, on the body's strand, when the body has started: `arm` may
/// arrange for body_run::cancel(). The function that `arm` returns is called on the same strand when the body has
/// ended. Cancellation is passed on, of each type that the caller has enabled. Throws what the body throws.
using disarm_function = std::function<void()>;
using arm_function = std::function<disarm_function(const std::shared_ptr<body_run>&)>;
asio::awaitable<void> run_cancellable(std::function<asio::awaitable<void>()> body, arm_function arm, body_strand where);

}  // namespace zkasio::detail
