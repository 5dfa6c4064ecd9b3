#include <zkasio/queues/detail/due_clock.hpp>

#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::chrono::minutes until_asked_again(1);  // clocks drift
constexpr std::chrono::seconds usual_answer(1);
constexpr std::chrono::hours longest_timer(24);

}  // namespace

asio::awaitable<server_time> ask_servers_time(session on, receipts with, std::string operation) {
    auto ask = [&]() -> asio::awaitable<server_time> {
        const committed done = co_await with.apply(transaction(), operation);
        co_return std::chrono::time_point_cast<std::chrono::milliseconds>(done.at);
    };
    co_return co_await retry_until_certain(toolbox(on).make_back_off(), ask);
}

due_clock::due_clock(session on, receipts with, std::function<void()> wake)
    : on_(std::move(on)), receipts_(std::move(with)), wake_(std::move(wake)) {}

asio::awaitable<server_time> due_clock::now() {
    if (!asked_ || boot_clock::now() - asked_at_ > until_asked_again) {
        // An answer that came late, as after an outage, tells a time long past: once more.
        for (bool is_late = true, again = true; is_late; again = false) {
            const auto begin = boot_clock::now();
            asked_ = co_await ask_servers_time(on_, receipts_, "receive");
            asked_at_ = boot_clock::now();
            is_late = again && asked_at_ - begin > usual_answer;
        }
        co_return *asked_;
    }
    co_return *asked_ + std::chrono::duration_cast<std::chrono::milliseconds>(boot_clock::now() - asked_at_);
}

void due_clock::wake_at(server_time due, server_time now) {
    if (on_.over()) return;
    timer_ = std::make_shared<asio::steady_timer>(on_.get_executor());
    timer_->expires_after(std::min<std::chrono::milliseconds>(due - now, longest_timer));
    // Destroying a timer that has just expired is too late to cancel its handler: hence the weak pointer.
    timer_->async_wait([this, weak = std::weak_ptr<asio::steady_timer>(timer_)](std::error_code cancelled) {
        if (!cancelled && !weak.expired()) wake_();
    });
}

}  // namespace zkasio::queue_detail
