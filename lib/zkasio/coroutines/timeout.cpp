// The cancellation of a coroutine at a point in time: timeout() and run_with_deadline().
#include <zkasio/coroutines/timeout.hpp>

#include <zkasio/detail/base/run_cancellable.hpp>

#include <asio/error.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <system_error>

namespace zkasio::detail {
namespace {

// Cancels the body at `deadline`, and sets `hit` unless the caller has cancelled the body before.
disarm_function cancel_at(boot_clock::time_point deadline, std::shared_ptr<body_run> run, std::shared_ptr<bool> hit) {
    using namespace std::chrono_literals;
    const auto timer = std::make_shared<asio::steady_timer>(run->strand);
    const auto now = boot_clock::now();
    const boot_clock::duration left = deadline > now ? deadline - now : 0ns;  // time_point::min() - now would overflow
    timer->expires_after(std::min<boot_clock::duration>(left, 24h * 365 * 100));
    timer->async_wait([run, hit, timer](std::error_code disarmed) {
        if (disarmed || run->ended) return;
        *hit = !run->cancelled;
        run->cancel_now();
    });
    return [timer] { timer->cancel(); };
}

// Returns the operation_aborted with which the body has ended because of `deadline`; null if the body has returned.
asio::awaitable<std::exception_ptr> run_limited(boot_clock::time_point deadline,
                                                std::function<asio::awaitable<void>()> body, body_strand where) {
    const auto hit = std::make_shared<bool>(false);
    arm_function arm = [deadline, hit](const std::shared_ptr<body_run>& run) { return cancel_at(deadline, run, hit); };
    std::exception_ptr aborted;
    try {
        co_await run_cancellable(std::move(body), std::move(arm), where);
    } catch (const std::system_error& e) {
        if (!*hit || e.code() != asio::error::operation_aborted) throw;
        aborted = std::current_exception();
    }
    co_return aborted;
}

[[noreturn]] void throw_timed_out(std::exception_ptr aborted) {
    try {
        std::rethrow_exception(std::move(aborted));
    } catch (const error& e) {
        throw error(errc::timed_out, e.operation(), e.path(), e.hint(), e.outcome_unknown());
    } catch (const std::system_error&) {
        throw error(errc::timed_out, "timeout");
    }
}

}  // namespace

asio::awaitable<bool> run_until_deadline(std::function<asio::awaitable<void>()> body, boot_clock::time_point deadline) {
    if (!body) throw error(errc::invalid_argument, "run_with_deadline", {}, "the body is empty");
    const std::exception_ptr aborted = co_await run_limited(deadline, std::move(body), body_strand::own);
    co_return !aborted;
}

boot_clock::time_point end_of(std::chrono::nanoseconds limit) {
    if (limit < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, "timeout", {}, "a time limit is not negative");
    return boot_clock::after(limit);
}

asio::awaitable<void> run_with_timeout(boot_clock::time_point end, std::function<asio::awaitable<void>()> body) {
    const std::exception_ptr aborted = co_await run_limited(end, std::move(body), body_strand::callers);
    if (aborted) throw_timed_out(aborted);
}

}  // namespace zkasio::detail
