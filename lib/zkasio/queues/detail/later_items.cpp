#include <zkasio/queues/detail/later_items.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/directories.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/retry_until_certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <tuple>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::chrono::minutes until_asked_again(1);  // clocks drift
constexpr std::chrono::hours longest_timer(24);

bool is_later(const later_item& a, const later_item& b) { return std::tie(a.due, a.name) > std::tie(b.due, b.name); }

}  // namespace

asio::awaitable<server_time> ask_servers_time(session on, receipts with, std::string operation) {
    auto ask = [&]() -> asio::awaitable<server_time> {
        const committed done = co_await with.apply(transaction(), operation);
        co_return std::chrono::time_point_cast<std::chrono::milliseconds>(done.at);
    };
    co_return co_await retry_until_certain(toolbox(on).make_back_off(), ask);
}

later_items::later_items(session on, spec_ptr what, receipts with, std::function<void()> wake)
    : on_(std::move(on)), what_(std::move(what)), receipts_(std::move(with)), wake_(std::move(wake)) {}

void later_items::forget() noexcept {
    watch_ = watch();
    timer_.reset();
    items_.clear();
    is_old_ = true;
}

asio::awaitable<void> later_items::move_due() {
    back_off pauses = toolbox(on_).make_back_off();
    for (;;) {
        if (is_old_) co_await list();
        if (items_.empty()) co_return;
        if (!now()) {
            asked_ = co_await ask_servers_time(on_, receipts_, "receive");
            asked_at_ = boot_clock::now();
        }
        const server_time known = now().value_or(*asked_);
        if (known < items_.back().due) co_return set_timer(known);
        const bool moved = co_await move_some(known);
        if (moved) continue;
        co_await pauses.pause();
        co_await on_.sync(what_->later);
    }
}

asio::awaitable<void> later_items::list() {
    is_old_ = false;
    std::optional<watched<node_children>> found;
    for (;;) {
        found = co_await if_exists(on_.children_and_watch(what_->later));
        if (found) break;
        co_await create_directories(on_, what_);
    }
    watch_ = std::move(found->changes);
    watch_.then([this](std::error_code failed, node_change) {  // not called once the watch is destroyed
        if (failed) return;
        is_old_ = true;
        wake_();
    });
    items_.clear();
    for (std::string& name : found->value.names)
        if (std::optional<later_item> item = parse_later(std::move(name))) items_.push_back(std::move(*item));
    std::sort(items_.begin(), items_.end(), is_later);
}

// Not later than the servers' time. Nothing: they have to be asked.
std::optional<server_time> later_items::now() const {
    const auto since = boot_clock::now() - asked_at_;
    if (!asked_ || since > until_asked_again) return std::nullopt;
    return *asked_ + std::chrono::duration_cast<std::chrono::milliseconds>(since);
}

void later_items::set_timer(server_time now) {
    timer_ = std::make_shared<asio::steady_timer>(on_.get_executor());
    timer_->expires_after(std::min<std::chrono::milliseconds>(items_.back().due - now, longest_timer));
    // Destroying a timer that has just expired is too late to cancel its handler: hence the weak pointer.
    timer_->async_wait([this, weak = std::weak_ptr<asio::steady_timer>(timer_)](std::error_code cancelled) {
        if (!cancelled && !weak.expired()) wake_();
    });
}

// Moves what is due, as much as one transaction takes. False: another client was ahead.
asio::awaitable<bool> later_items::move_some(server_time now) {
    std::vector<std::pair<later_item, pending_data>> reads;
    for (auto it = items_.rbegin(); it != items_.rend() && it->due <= now && reads.size() < limit_.at_once(); ++it)
        reads.emplace_back(*it, toolbox(on_).start_get(join_path(what_->later, it->name)));
    transaction steps;
    std::size_t moved = 0;
    std::optional<error> failed;
    limit_.begin();
    for (auto& [item, asked] : reads) {
        node_data found;
        try {
            found = co_await asked.result();
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node && e.code() != condition::retryable) throw;
            failed.emplace(e);
        }
        if (failed || !limit_.takes(found.data.size())) break;
        ++moved;
        steps.remove(join_path(what_->later, item.name));
        steps.create(what_->item(item.prefix), bytes(std::move(found.data)),
                     what_->of_mode(create_mode::persistent_sequential));
    }
    limit_.end();
    is_old_ = is_old_ || failed;
    if (moved == 0) co_return false;
    failed.reset();
    try {
        co_await receipts_.apply(std::move(steps), "receive");
    } catch (const error& e) {
        // connection_loss: the receipt was taken away, too.
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::connection_loss) throw;
        failed.emplace(e);
    }
    if (!failed) items_.resize(items_.size() - moved);
    is_old_ = is_old_ || failed;
    if (failed) co_await create_directories(on_, what_);
    co_return !failed;
}

}  // namespace zkasio::queue_detail
