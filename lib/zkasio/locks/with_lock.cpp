#include <zkasio/locks/with_lock.hpp>

#include <functional>
#include <system_error>
#include <utility>

namespace zkasio {

asio::awaitable<void> lock_detail::run_with_lock(lock_body body, std::string path,
                                                 asio::awaitable<lock_guard> acquiring, revocation_policy policy,
                                                 std::chrono::nanoseconds stop_margin) {
    if (!body) throw error(errc::invalid_argument, "with_lock", path, "the body is empty");
    if (!acquiring.valid()) throw error(errc::invalid_argument, "with_lock", path, "the operation is empty");
    lock_guard guard = co_await std::move(acquiring);
    std::function<asio::awaitable<void>()> bound = [&] { return body(guard); };
    // If the body throws, the guard releases in the background.
    co_await run_under(guard.claim(), false, std::move(bound), stop_margin, "with_lock", policy.grace());
    // The body has completed, and its result is worth more than the news of a cancellation: the release goes on in the
    // background.
    try {
        co_await guard.release();
    } catch (const std::system_error& e) {
        if (e.code() != condition::cancelled) throw;
    }
}

}  // namespace zkasio
