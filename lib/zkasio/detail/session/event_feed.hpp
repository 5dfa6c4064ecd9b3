#pragma once

#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/session_event.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace zkasio::detail {

/// One reader of the session's events, with the events that it has not read yet.
class event_subscription {
public:
    /// Takes out the oldest unread event. From any thread.
    std::optional<session_event> take();

private:
    friend class event_feed;
    std::mutex mutex_;
    std::deque<session_event> unread_;                                  // guarded by the mutex
    one_shot_ptr arrival_ = std::make_shared<one_shot_state>();  // used on the strand only
};

using event_subscription_ptr = std::shared_ptr<event_subscription>;

/// Tells the readers of client::events() what happens to the session. On the strand.
class event_feed {
public:
    explicit event_feed(wait_table& waits) : waits_(waits) {}

    void publish(const session_event& event);
    /// @param first the event that the reader reads before all that are published later.
    void subscribe(const event_subscription_ptr& s, session_event first);
    /// `to` is told as soon as there is something to take().
    void wait(op_id id, const event_subscription_ptr& s, receiver to);

private:
    void sweep();

    wait_table& waits_;
    std::vector<std::weak_ptr<event_subscription>> subscriptions_;
    std::size_t swept_ = 0;  // the number of subscriptions after the last sweep()
};

}  // namespace zkasio::detail
