#include <zkasio/locks/detail/queue/queue_listing.hpp>

#include <zkasio/locks/detail/queue/lock_queue.hpp>

#include <exception>

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
        // with an observer among them, and doubted owners lose the lock (G28). The next listing is for a later
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

}  // namespace zkasio::lock_detail
