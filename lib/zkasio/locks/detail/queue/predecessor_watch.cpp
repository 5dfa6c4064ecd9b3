#include <zkasio/locks/detail/queue/predecessor_watch.hpp>

#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>

#include <exception>
#include <utility>

namespace zkasio::lock_detail {

predecessor_watch::predecessor_watch(lock_queue& queue) : queue_(queue), pauses_(queue.tools().make_back_off()) {}

void predecessor_watch::follow(const std::string& name) {
    if (name_ == name) return;
    stop();
    const std::uint64_t round = ++round_;
    // A get() leaves no watch behind on a node that is gone; exists() would (CURATOR-107).
    const std::string path = join_path(queue_.directory(), name);
    request_ = std::make_shared<pending_watched_data>(queue_.tools().start_get_and_watch(path));
    name_ = name;  // not if start_get_and_watch() throws
    const std::weak_ptr<pending_watched_data> asked = request_;
    request_->then([this, weak = queue_.weak_from_this(), asked, round] {
        const auto alive = weak.lock();
        const auto request = asked.lock();
        if (alive && request) answered(request, round);
    });
}

void predecessor_watch::stop() {
    name_.clear();
    ++round_;
    request_.reset();
    watch_.reset();
}

void predecessor_watch::answered(const std::shared_ptr<pending_watched_data>& asked, std::uint64_t round) {
    if (queue_.over() || round != round_) return;
    try {
        watched<node_data> seen = asked->get();
        request_.reset();
        watch_.emplace(std::move(seen.changes));
        pauses_.reset();
    } catch (const error& e) {
        if (e.code() == condition::retryable) return ask_later(round);
        const std::string name = name_;
        stop();
        if (e.code() == zk_errc::no_node) return queue_.predecessor_gone(name);
        return queue_.fail_waiting(std::current_exception());
    }
    wait_for_change(round);
}

void predecessor_watch::wait_for_change(std::uint64_t round) {
    watch_->then([this, weak = queue_.weak_from_this(), name = name_, round](std::error_code over, node_change what) {
        const auto alive = weak.lock();
        if (over || !alive || queue_.over() || round != round_) return;
        stop();
        if (what == node_change::removed)
            queue_.predecessor_gone(name);
        else
            queue_.reconsider();  // a change of the node's data has used up the watch: another one is needed
    });
}

// During the pause the node is treated as followed.
void predecessor_watch::ask_later(std::uint64_t round) {
    request_.reset();
    pauses_.then(queue_.on().get_executor(), [this, weak = queue_.weak_from_this(), round] {
        const auto alive = weak.lock();
        if (!alive || queue_.over() || round != round_) return;
        stop();
        queue_.reconsider();
    });
}

}  // namespace zkasio::lock_detail
