#pragma once

#include <zkasio/detail/base/run_cancellable.hpp>
#include <zkasio/detail/client/core.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <functional>
#include <memory>

/// The bridge between a coroutine on any executor and the strand: each of these suspends the caller, does its work on
/// the strand, and resumes the caller on the caller's own executor, exactly once. Cancelling the caller ends the wait
/// at once, with asio::error::operation_aborted. Failures are in the `code` of what is returned: nothing is thrown but
/// for lack of memory; except by wait_for_or_throw(), which costs the least memory.
namespace zkasio::detail {

// `what` and `answer` have to exist until completion: neither is moved through the layers in between.
asio::awaitable<void> perform(const core_ptr& c, command& what, reply& answer);
asio::awaitable<void> wait_connected(const core_ptr& c, reply& answer);

asio::awaitable<wait_end> wait_for(core_ptr c, one_shot_ptr event);
asio::awaitable<void> wait_for_or_throw(core_ptr c, one_shot_ptr event);
asio::awaitable<wait_end> wait_closed(core_ptr c);
asio::awaitable<wait_end> wait_idle(core_ptr c);
asio::awaitable<wait_end> wait_extended(core_ptr c, session_record_ptr s, boot_clock::time_point beyond);
asio::awaitable<wait_end> wait_event(core_ptr c, event_subscription_ptr s);

/// Runs `f` on the strand, now if this is the strand. Drops exceptions of `f` that runs now, but std::bad_alloc.
template <class F>
void on_strand(const core_ptr& c, F f) noexcept;

}  // namespace zkasio::detail

#include <asio/dispatch.hpp>

#include <new>

namespace zkasio::detail {

template <class F>
void on_strand(const core_ptr& c, F f) noexcept {
    if (!c->strand().running_in_this_thread()) return asio::dispatch(c->strand(), std::move(f));
    try {
        f();
    } catch (const std::bad_alloc&) {
        std::terminate();
    } catch (...) {
    }
}

/// Cancels the body when `event` is fired and `really(code)` is true. The returned function ends the wait for `event`.
disarm_function stop_when(std::shared_ptr<core> c, one_shot_ptr event, std::shared_ptr<body_run> run,
                          std::function<bool(std::error_code)> really);

}  // namespace zkasio::detail
