#include <zkasio/back_off.hpp>

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/client/core.hpp>
#include <zkasio/error.hpp>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>

namespace zkasio {

std::chrono::milliseconds back_off::next() {
    constexpr int enough = 1000;  // more attempts do not lengthen the pause
    attempt_ = std::min(attempt_ + 1, enough);
    const retry_policy& pace = pace_ ? *pace_ : core_->options().retry();
    return pace.pause(attempt_ - 1, detail::jitter());
}

asio::awaitable<void> back_off::wait(std::chrono::milliseconds pause) {
    if (pause == std::chrono::milliseconds::zero()) co_return;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(pause);
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> back_off::wait_as(std::chrono::milliseconds pause, std::string operation, std::string path) {
    try {
        co_await wait(pause);
    } catch (...) {
        rethrow_as(operation, path);
    }
}

void back_off::then(const asio::any_io_executor& executor, std::function<void()> f) {
    timer_ = std::make_shared<asio::steady_timer>(executor);
    const auto pause = next();
    // Destroying a timer that has just expired is too late to cancel its handler: hence the weak pointer.
    auto unless_gone = [f = std::move(f), weak = std::weak_ptr<asio::steady_timer>(timer_)](std::error_code cancelled) {
        if (!cancelled && !weak.expired()) f();
    };
    if (pause == std::chrono::milliseconds::zero())
        return asio::post(executor, [unless_gone = std::move(unless_gone)] { unless_gone({}); });
    timer_->expires_after(pause);
    timer_->async_wait(std::move(unless_gone));
}

// Other work of the client may have begun before, and ended another session.
asio::awaitable<void> session_pace::wait(std::shared_ptr<detail::core> core) {
    if (!core) co_return;
    for (auto pause = core->sessions().until_usable(); pause > pause.zero(); pause = core->sessions().until_usable())
        co_await back_off::wait(pause);
}

asio::awaitable<void> session_pace::wait_as(std::shared_ptr<detail::core> core, std::string operation,
                                            std::string path) {
    try {
        co_await wait(std::move(core));
    } catch (...) {
        rethrow_as(operation, path);
    }
}

}  // namespace zkasio
