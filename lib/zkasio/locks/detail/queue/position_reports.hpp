#pragma once

#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/detail/queue/queue_order.hpp>

#include <map>

namespace zkasio::lock_detail {

class lock_queue;

/// Part of a lock_queue: tells waiters that have an observer their position in the queue. On the strand.
class position_reports {
public:
    explicit position_reports(lock_queue& queue) : queue_(queue) {}
    void add(const contender_ptr& c) {
        if (c->asked.observed) observed_.emplace(c->at, c);
    }
    void remove(const contender_ptr& c) { observed_.erase(c->at); }
    void clear() { observed_.clear(); }

    /// Tells the observers whose position may have changed. Asks for a listing if only a listing can tell a position.
    void tell();

private:
    void tell(const contender_ptr& c, queue_order::insight where) const;

    lock_queue& queue_;
    std::map<queue_key, contender_ptr> observed_;
};

}  // namespace zkasio::lock_detail
