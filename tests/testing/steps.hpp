#pragma once

#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

/// What happens at a step of a fake ensemble, for tests that try each step.
namespace zkasio::test {

/// Sessions and connections that nothing but the test ends.
inline client_options calm() {
    using namespace std::chrono_literals;
    return client_options("fake").session_timeout(20s).connection_timeout(1h);
}

inline client_options sessions_of_ten_seconds() {
    using namespace std::chrono_literals;
    return client_options("zk1:2181").session_timeout(10s);
}

/// On the caller's executor, in the ensemble's time.
inline asio::awaitable<void> sleep_for(std::chrono::nanoseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
}

/// Calls `f` after step `at`. @param steps counts them, from 0.
inline void at_step(testing::fake_ensemble& e, std::size_t& steps, std::size_t at, std::function<void()> f) {
    steps = 0;
    e.on_step([&e, &steps, at, f = std::move(f)](std::string_view) {
        if (steps++ == at) asio::post(e.context(), f);
    });
}

/// Cuts the connection of `one` after `first` steps, and that of `two` another `second` steps later (none for 0).
/// @param steps counts them, from its value on.
inline void cut_at_steps(testing::fake_ensemble& e, const client& one, const client& two, std::size_t first,
                         std::size_t second, std::size_t& steps) {
    e.on_step([&, first, second](std::string_view) {
        const bool is_first = steps == first;
        if (is_first || steps == first + second)
            asio::post(e.context(), [&e, &cut = is_first ? one : two] { e.cut(cut); });
        ++steps;
    });
}

}  // namespace zkasio::test
