#include <zkasio/detail/session/event_feed.hpp>

#include <utility>

namespace zkasio::detail {

std::optional<session_event> event_subscription::take() {
    const std::lock_guard lock(mutex_);
    std::optional<session_event> oldest;
    if (unread_.empty()) return oldest;
    oldest = std::move(unread_.front());
    unread_.pop_front();
    return oldest;
}

void event_feed::publish(const session_event& event) {
    constexpr std::size_t longest = 256;  // of a reader that does not read: keep the newest
    sweep();
    for (const auto& weak : subscriptions_) {
        const event_subscription_ptr s = weak.lock();
        if (!s) continue;
        {
            const std::lock_guard lock(s->mutex_);
            if (s->unread_.size() == longest) s->unread_.pop_front();
            s->unread_.push_back(event);
        }
        waits_.fire(std::exchange(s->arrival_, std::make_shared<one_shot_state>()));
    }
}

void event_feed::subscribe(const event_subscription_ptr& s, session_event first) {
    {
        const std::lock_guard lock(s->mutex_);
        s->unread_.push_back(std::move(first));
    }
    if (subscriptions_.size() > 2 * swept_ + 16) sweep();
    subscriptions_.push_back(s);
}

void event_feed::wait(op_id id, const event_subscription_ptr& s, receiver to) {
    bool unread = false;
    {
        const std::lock_guard lock(s->mutex_);
        unread = !s->unread_.empty();
    }
    if (!unread) return waits_.wait(id, s->arrival_, std::move(to));
    to.deliver({});
}

void event_feed::sweep() {
    std::erase_if(subscriptions_, [](const auto& weak) { return weak.expired(); });
    swept_ = subscriptions_.size();
}

}  // namespace zkasio::detail
