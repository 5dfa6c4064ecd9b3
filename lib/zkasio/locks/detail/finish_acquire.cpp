#include <zkasio/locks/detail/finish_acquire.hpp>

#include <zkasio/recipe/rethrow_to_caller.hpp>
#include <zkasio/recipe/retry_until_certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/error.hpp>

#include <utility>

namespace zkasio::lock_detail {

void refuse_owner(const acquire_options& how, const std::string& path, std::string_view why) {
    if (how.owner()) throw error(errc::invalid_argument, "acquire", path, why);
}

void refuse_data(const acquire_options& how, const std::string& path, std::string_view why) {
    if (how.data()) throw error(errc::invalid_argument, "acquire", path, why);
}

asio::awaitable<bool> wait_until_covered(std::shared_ptr<lock_claim> claim) {
    if (claim->hold().held()) co_return true;
    try {
        co_await claim->hold().confirmed();
        co_return true;
    } catch (const error& e) {
        if (e.code() != errc::lock_lost) throw;
    }
    if (!claim->on().over()) co_return false;
    const std::error_code why = co_await claim->on().ended();
    throw error(why, "acquire", claim->paths().front());
}

asio::awaitable<void> acquire_in_session(session on, std::string path,
                                         std::function<asio::awaitable<void>()> acquire) {
    std::function<asio::awaitable<void>()> attempt = [&]() -> asio::awaitable<void> {
        if (on.over()) {
            const std::error_code why = co_await on.ended();
            throw error(why, "acquire", path);
        }
        co_await acquire();
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), attempt);
}

std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim, const client& zk) {
    std::optional<lock_guard> guard;
    if (claim) guard.emplace(std::move(claim), zk.keep_open());
    return guard;
}

void rethrow_as_acquire(const std::string& path) {
    try {
        throw;
    } catch (const error& e) {
        if (e.code() == condition::cancelled) throw error(asio::error::operation_aborted, "acquire", path);
        if (e.code() == condition::session_ended || e.code() == condition::retryable)
            throw error(e.code(), "acquire", path, e.hint());
        rethrow_request_as("acquire", path);
    } catch (const std::system_error& e) {
        if (e.code() != condition::cancelled) throw;
        throw error(asio::error::operation_aborted, "acquire", path);
    }
}

asio::awaitable<std::optional<lock_guard>> errors_as_acquire(asio::awaitable<std::optional<lock_guard>> attempt,
                                                             std::string path) {
    try {
        co_return co_await std::move(attempt);
    } catch (...) {
        rethrow_as_acquire(path);
    }
}

asio::awaitable<lock_guard> require_guard(asio::awaitable<std::optional<lock_guard>> attempt) {
    std::optional<lock_guard> guard = co_await std::move(attempt);
    if (!guard)
        throw error(
            errc::invalid_argument, "acquire", {},
            "this kind of lock (lockable::attempts) has ended an attempt without a guard, although it was to wait");
    co_return std::move(*guard);
}

}  // namespace zkasio::lock_detail
