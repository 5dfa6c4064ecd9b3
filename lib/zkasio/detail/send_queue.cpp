#include <zkasio/detail/send_queue.hpp>

namespace zkasio::detail {
namespace {

std::optional<op_id> take_first(std::deque<op_id>& from) {
    const op_id id = from.front();
    from.pop_front();
    return id;
}

}  // namespace

void send_queue::push(lane l, op_id id) {
    switch (l) {
        case lane::urgent: return urgent_.push_back(id);
        case lane::again: again_.insert(id); return;
        case lane::normal: return normal_.push_back(id);
    }
}

void send_queue::put_back(lane l, op_id id) {
    switch (l) {
        case lane::urgent: return urgent_.push_front(id);
        case lane::again: again_.insert(id); return;
        case lane::normal: return normal_.push_front(id);
    }
}

std::optional<op_id> send_queue::next(bool window_full, time_point now) {
    if (!urgent_.empty()) return take_first(urgent_);
    if (window_full) return std::nullopt;
    if (!again_.empty() && now >= again_not_before_) return again_.extract(again_.begin()).value();
    if (!normal_.empty()) return take_first(normal_);
    return std::nullopt;  // until again_not_before()
}

}  // namespace zkasio::detail
