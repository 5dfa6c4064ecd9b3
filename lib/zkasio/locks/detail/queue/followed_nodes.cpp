#include <zkasio/locks/detail/queue/followed_nodes.hpp>

#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace zkasio::lock_detail {

queue_listing::queue_listing(lock_queue& queue) : queue_(queue), pauses_(queue.tools().make_back_off()) {}

void queue_listing::ask() {
    if (under_way_) return;
    const std::uint64_t number = queue_.order().begin_listing();
    const pending_children listing = queue_.tools().start_children(queue_.directory());
    under_way_ = true;
    listing.then([this, alive = queue_.shared_from_this(), listing, number] { answered(listing, number); });
}

void queue_listing::answered(const pending_children& listing, std::uint64_t number) {
    under_way_ = false;
    if (queue_.over()) return;
    node_children found;
    try {
        found = listing.get();
    } catch (const error& e) {
        // Without a directory the queue is empty, also of contenders of this session: an empty listing.
        if (e.code() != zk_errc::no_node && e.code() == condition::retryable) return ask_later();
        pauses_.reset();
        // A permanent failure needs no pause: the failure ends all contenders that need a listing. Waiters fail, those
        // with an observer among them, and doubted owners lose the lock (G27). The next listing is for a later
        // contender, whose create was a round trip of its own, and which fails in turn.
        if (e.code() != zk_errc::no_node) return queue_.listing_failed(std::current_exception());
    }
    pauses_.reset();
    queue_.listed(found.names, number);
}

void queue_listing::ask_later() {
    under_way_ = true;
    pauses_.then(queue_.on().get_executor(), [this, weak = queue_.weak_from_this()] {
        const auto alive = weak.lock();
        if (!alive || queue_.over()) return;
        under_way_ = false;
        queue_.reconsider();
    });
    queue_.reconsider();
}

followed_nodes::followed_nodes(lock_queue& queue) : queue_(queue), pauses_(queue.tools().make_back_off()) {}

void followed_nodes::follow(const std::vector<std::string>& names, bool nearest_counts) {
    nearest_ = nearest_counts ? names.front() : std::string();
    std::erase_if(followed_, [&](const auto& f) {
        return (f.second.unreadable && f.first == nearest_) ||
               std::find(names.begin(), names.end(), f.first) == names.end();
    });
    for (const std::string& name : names)
        if (!followed_.contains(name)) begin(name);
}

void followed_nodes::begin(const std::string& name) {
    // A get() leaves no watch behind on a node that is gone; exists() would (CURATOR-107).
    auto request = std::make_shared<pending_watched_data>(
        queue_.tools().start_get_and_watch(join_path(queue_.directory(), name)));
    const std::uint64_t round = ++last_round_;
    followed_.emplace(name, one{round, request, {}});
    request->then([this, weak = queue_.weak_from_this(), name, round] {
        if (const auto alive = weak.lock()) answered(name, round);
    });
}

followed_nodes::one* followed_nodes::find(const std::string& name, std::uint64_t round) {
    const auto it = followed_.find(name);
    return queue_.over() || it == followed_.end() || it->second.round != round ? nullptr : &it->second;
}

void followed_nodes::answered(const std::string& name, std::uint64_t round) {
    one* node = find(name, round);
    if (!node) return;
    try {
        watched<node_data> seen = std::exchange(node->request, nullptr)->get();
        node->changes.emplace(std::move(seen.changes));
        pauses_.reset();
    } catch (const error& e) {
        node->refused = e.code() == condition::retryable;
        if (node->refused) return ask_later();
        if (e.code() == zk_errc::no_node) {
            followed_.erase(name);
            return queue_.followed_gone(name);
        }
        node->unreadable = name != nearest_;
        if (node->unreadable) return;
        stop();
        return queue_.fail_waiting(std::current_exception());
    }
    node->changes->then([this, weak = queue_.weak_from_this(), name, round](std::error_code over, node_change what) {
        const auto alive = weak.lock();
        if (alive && !over) changed(name, round, what);
    });
}

void followed_nodes::changed(const std::string& name, std::uint64_t round, node_change what) {
    if (!find(name, round)) return;
    followed_.erase(name);
    if (what == node_change::removed)
        queue_.followed_gone(name);
    else
        queue_.reconsider();  // a change of the node's data has used up the watch: another one is needed
}

// During the pause the nodes are treated as followed.
void followed_nodes::ask_later() {
    pauses_.then(queue_.on().get_executor(), [this, weak = queue_.weak_from_this()] {
        const auto alive = weak.lock();
        if (!alive || queue_.over()) return;
        std::erase_if(followed_, [](const auto& f) { return f.second.refused; });
        queue_.reconsider();
    });
}

}  // namespace zkasio::lock_detail
