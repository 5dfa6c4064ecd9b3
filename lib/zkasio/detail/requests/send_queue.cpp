#include <zkasio/detail/requests/send_queue.hpp>

#include <algorithm>

namespace zkasio::detail {

void send_queue::fifo::push_back(op_id id) {
    // Only when more than half of the ids have been taken: each id is moved once on average.
    if (ids_.size() == ids_.capacity() && first_ > ids_.size() / 2) drop_taken();
    ids_.push_back(id);
}

void send_queue::fifo::push_front(op_id id) {
    if (first_ > 0)
        ids_[--first_] = id;
    else
        ids_.insert(ids_.begin(), id);
    check();
}

op_id send_queue::fifo::pop_front() noexcept {
    assert(!empty());
    const op_id id = ids_[first_++];
    check();
    if (empty()) clear();
    return id;
}

void send_queue::fifo::clear() noexcept {
    constexpr std::size_t kept = 1024;
    if (ids_.capacity() > kept)
        std::vector<op_id>().swap(ids_);
    else
        ids_.clear();
    first_ = 0;
}

void send_queue::fifo::drop_taken() {
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
}

void send_queue::push(lane l, op_id id) {
    switch (l) {
        case lane::urgent: return urgent_.push_back(id);
        case lane::again: again_.insert(id); return;
        case lane::late: late_.insert(id); return;
        case lane::normal: return normal_.push_back(id);
    }
}

void send_queue::put_back(lane l, op_id id) {
    switch (l) {
        case lane::urgent: return urgent_.push_front(id);
        case lane::again: again_.insert(id); return;
        case lane::late: late_.insert(id); return;
        case lane::normal: return normal_.push_front(id);
    }
}

std::optional<op_id> send_queue::next(bool window_full, time_point now) {
    if (!urgent_.empty()) {
        const op_id id = urgent_.front();
        urgent_.pop_front();
        return id;
    }
    if (window_full) return std::nullopt;
    if (!again_.empty() && now >= again_not_before_) return again_.extract(again_.begin()).value();
    if (!late_.empty() && now >= late_not_before_) return late_.extract(late_.begin()).value();
    if (!normal_.empty()) return normal_.pop_front();
    return std::nullopt;  // the others pause
}

send_queue::time_point send_queue::next_end_of_pause(time_point now) const noexcept {
    time_point next = time_point::max();
    if (!again_.empty() && again_not_before_ > now) next = again_not_before_;
    if (!late_.empty() && late_not_before_ > now) next = std::min(next, late_not_before_);
    return next;
}

}  // namespace zkasio::detail
