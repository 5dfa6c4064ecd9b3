#include <zkasio/locks/detail/acquire_within.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

namespace zkasio::lock_detail {

time_limit time_limit::after(std::chrono::nanoseconds duration) noexcept {
    if (duration < std::chrono::nanoseconds::zero()) return {boot_clock::now(), true};
    return {boot_clock::after(duration), false};
}

asio::awaitable<std::optional<lock_guard>> acquire_within(client zk, std::string operation, std::string path,
                                                          time_limit limit, lock_attempt attempt, lock_attempt single) {
    if (limit.negative()) throw error(errc::invalid_argument, operation, path, "a time limit is not negative");
    if (limit.end() <= boot_clock::now()) {
        const session_state now = zk.state();
        if (now == session_state::connecting || now == session_state::suspended) {
            co_await yield_turn();
            throw error(errc::not_connected, operation, path,
                        "there is no connection to " + zk.options().servers() + ", and no time to wait for one");
        }
        const lock_attempt& now_or_never = single ? single : attempt;
        co_return co_await now_or_never(if_contended::give_up);
    }
    std::optional<lock_guard> guard;
    bool had_connection = false;
    std::string why = "no connection to " + zk.options().servers() + " within the time limit";
    std::function<asio::awaitable<void>()> body = [&]() -> asio::awaitable<void> {
        try {
            co_await toolbox(zk).connected(operation, path);
        } catch (const error& e) {
            if (!e.hint().empty()) why = e.hint();
            throw;
        }
        had_connection = true;
        guard = co_await attempt(if_contended::wait);
    };
    co_await run_with_deadline(limit.end(), std::move(body));
    // A very short limit may pass before connected() has returned, even with a connection: so the state is asked, too.
    if (!guard && !had_connection && zk.state() != session_state::connected)
        throw error(errc::not_connected, operation, path, why);
    co_return guard;
}

}  // namespace zkasio::lock_detail
