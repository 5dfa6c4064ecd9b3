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

void session_pace::begin() noexcept {
    began_ = boot_clock::now();
    learn_timeout();
}

// Called twice for each session: a session that is being opened has no timeout yet.
void session_pace::learn_timeout() noexcept {
    if (!core_) return;
    const std::chrono::milliseconds granted(core_->current_session_record()->timeout_ms.load());
    if (granted > granted.zero()) timeout_ = granted;
}

std::chrono::milliseconds session_pace::next() {
    using std::chrono::milliseconds;
    if (!core_) return milliseconds::zero();
    learn_timeout();
    const milliseconds enough = timeout_ > timeout_.zero() ? timeout_ : core_->options().session_timeout();
    if (boot_clock::now() - began_ >= enough) {
        short_sessions_ = 0;
        return milliseconds::zero();
    }
    constexpr milliseconds longest = std::chrono::seconds(10);
    constexpr int enough_doublings = 20;
    const milliseconds first = core_->options().retry().pause(0, 0.5);  // without its random part
    const milliseconds doubled = first * (1 << std::min(short_sessions_, enough_doublings));
    short_sessions_ = std::min(short_sessions_ + 1, enough_doublings);
    return std::chrono::duration_cast<milliseconds>(std::min(doubled, std::max(first, longest)) *
                                                    (0.5 + detail::jitter()));
}

}  // namespace zkasio
