#include <zkasio/recipes/detail/timed.hpp>

#include <zkasio/deadline.hpp>

namespace zkasio::recipes::detail {

asio::awaitable<std::optional<lock_guard>> acquire_until(client zk, std::string path, boot_clock::time_point limit,
                                                         std::function<asio::awaitable<lock_guard>()> acquire) {
    std::optional<lock_guard> guard;
    bool had_connection = false;
    std::function<asio::awaitable<void>()> body = [&]() -> asio::awaitable<void> {
        co_await zk.connected("acquire", path);
        had_connection = true;
        guard.emplace(co_await acquire());
    };
    co_await run_with_deadline(limit, std::move(body));
    // A very short limit may pass before we have even looked: that says nothing about the connection.
    if (!guard && !had_connection && zk.state() != session_state::connected)
        throw error(errc::not_connected, "try_acquire", path, "no connection within the time limit");
    co_return guard;
}

boot_clock::time_point limit_after(std::chrono::nanoseconds duration, const std::string& path) {
    if (duration < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, "try_acquire_for", path, "a time limit is not negative");
    const auto now = boot_clock::now();
    return duration > boot_clock::time_point::max() - now ? boot_clock::time_point::max() : now + duration;
}

}  // namespace zkasio::recipes::detail
