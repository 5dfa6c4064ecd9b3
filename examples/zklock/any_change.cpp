#include "any_change.hpp"

#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/error.hpp>

#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

namespace zklock {
namespace {

asio::awaitable<void> cancel_when_fired(const zkasio::watch& w, zkasio::task_scope& tasks) {
    co_await w.changed();
    tasks.cancel();
}

}  // namespace

asio::awaitable<void> any_changed_or_expired(const std::vector<zkasio::watch>& watches,
                                             asio::steady_timer::duration at_most) {
    using clock = asio::steady_timer::clock_type;
    const auto now = clock::now();
    const auto end = at_most > clock::time_point::max() - now ? clock::time_point::max() : now + at_most;
    asio::steady_timer timer(co_await asio::this_coro::executor, end);
    auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        for (const zkasio::watch& w : watches) tasks.spawn(cancel_when_fired(w, tasks));
        co_await timer.async_wait(asio::use_awaitable);
        tasks.cancel();
    };
    try {
        co_await zkasio::with_task_scope(body);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::session_expired) throw;
    }
}

}  // namespace zklock
