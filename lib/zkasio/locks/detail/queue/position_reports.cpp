#include <zkasio/locks/detail/queue/position_reports.hpp>

#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>

#include <asio/post.hpp>

#include <cstddef>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace zkasio::lock_detail {
namespace {

asio::awaitable<void> observer_failed(std::string directory, std::exception_ptr why) {
    std::string text = "an exception of unknown type";
    try {
        std::rethrow_exception(why);
    } catch (const std::exception& e) {
        text = e.what();
    } catch (...) {
    }
    throw std::runtime_error("on_position of " + directory + ": " + text);
    co_return;
}

void call(lock_queue& queue, observation& observed, const queue_position& position) noexcept {
    try {
        const std::lock_guard lock(observed.telling);
        if (!observed.over) observed.tell(position);
    } catch (...) {
        queue.tools().run_in_background(observer_failed(queue.directory(), std::current_exception()));  // logs it
    }
}

}  // namespace

void position_reports::tell() {
    queue_order& order = queue_.order();
    const auto from = order.changed_from();
    if (!from || observed_.empty()) return;
    std::vector<contender_ptr> those;
    std::vector<queue_key> places;
    for (auto it = observed_.lower_bound(queue_key{*from, lock_kind::exclusive, 0}); it != observed_.end(); ++it) {
        if (!order.knows(it->first)) {
            if (those.empty()) return queue_.ask_for_listing();
            break;
        }
        those.push_back(it->second);
        places.push_back(it->first);
    }
    std::vector<queue_order::insight> insights = order.look_at(places);
    order.told();
    if (!places.empty() && places.back() != observed_.rbegin()->first) {
        order.changed(places.back().number + 1);  // the positions behind this place are not known yet
        queue_.ask_for_listing();
    }
    for (std::size_t i = 0; i < those.size(); ++i) tell(those[i], std::move(insights[i]));
}

void position_reports::tell(const contender_ptr& c, queue_order::insight where) const {
    queue_position position;
    position.ahead = where.position;
    if (!where.predecessor.empty()) position.predecessor = join_path(queue_.directory(), where.predecessor);
    const std::shared_ptr<observation> observed = c->asked.observed;
    if (observed->told == position) return;
    observed->told = position;
    // The observer is the user's code, and is called in a turn of its own, not in the middle of a change to the queue.
    auto tell_it = [queue = queue_.shared_from_this(), observed, position = std::move(position)] {
        call(*queue, *observed, position);
    };
    asio::post(queue_.on().get_executor(), std::move(tell_it));
}

}  // namespace zkasio::lock_detail
