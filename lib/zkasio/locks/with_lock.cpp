#include <zkasio/locks/with_lock.hpp>

#include <zkasio/locks/detail/revocation_watch.hpp>

#include <exception>
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
    if (!policy.grace()) {
        co_await run_under(guard.claim(), false, std::move(bound), stop_margin, "with_lock");
    } else {
        const auto claim = guard.claim();
        const lock_detail::revocation_watch watch(claim);
        const one_shot_event stop = watch.stop_after(*policy.grace());
        std::function<asio::awaitable<void>()> revocable = [&]() -> asio::awaitable<void> {
            std::exception_ptr failed, thrown;
            std::function<asio::awaitable<void>()> noted = noting(bound, thrown);
            bool finished = false;
            try {
                finished = co_await stop.run_until(noted);
            } catch (...) {
                failed = std::current_exception();
            }
            if (!finished && (!failed || watch.stopped()))
                throw_with_body_failure(error(errc::revoked, "with_lock", guard.path()), failed ? failed : thrown);
            if (failed) std::rethrow_exception(failed);
        };
        co_await run_under(claim, false, std::move(revocable), stop_margin, "with_lock");
    }
    // The body has completed, and its result is worth more than the news of a cancellation: the release goes on in the
    // background.
    try {
        co_await guard.release();
    } catch (const std::system_error& e) {
        if (e.code() != condition::cancelled) throw;
    }
}

}  // namespace zkasio
