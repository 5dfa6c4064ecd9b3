#include <zkasio/cache/detail/cache_board.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/events.hpp>

#include <cassert>
#include <utility>

namespace zkasio::cache_detail {

namespace {

// The upper limit of the memory that a change keeps. The state after the change may be shared with the tree, or with a
// later change as its state before, but need not be: a change of the node's children copies that state.
std::size_t cost(const tree_delta& change) noexcept {
    std::size_t data = 0;
    for (const value_ptr& value : {change.before, change.after})
        if (value) data += value->data.size();
    return sizeof(tree_delta) + 2 * sizeof(node_value) + change.path.size() + data;
}

}  // namespace

// Large objects are destroyed outside of the lock: the replaced snapshot, dropped changes, and changes without a
// reader.
void cache_board::publish(snapshot next, std::vector<tree_delta> changes) {
    std::shared_ptr<const snapshot> gone;
    change_list dropped;

    std::unique_lock lock(mutex_);
    const bool flips = next.current != (latest_ && latest_->current) || next.ready != (latest_ && latest_->ready);
    const bool notable = next.ready && (flips || !changes.empty());
    next.version = (latest_ ? latest_->version : 0) + 1;
    gone = std::exchange(latest_, std::make_shared<const snapshot>(std::move(next)));
    for (tree_delta& change : changes) {
        if (readers_.empty()) {  // then no change is kept
            ++first_change_;
            continue;
        }
        const std::size_t bytes = cost(change);
        changes_.push_back(std::move(change));
        bytes_ += bytes;
        while (changes_.size() > most_.changes || bytes_ > most_.bytes) drop_oldest(dropped);
    }
    if (!notable) return lock.unlock();
    ++notice_;
    change_.notify_all(std::move(lock));
}

// With the lock.
void cache_board::take_first(change_list& into) {
    const std::size_t bytes = cost(changes_.front());
    assert(bytes <= bytes_);
    into.push_back(std::move(changes_.front()));
    changes_.pop_front();
    bytes_ -= bytes;
    ++first_change_;
    assert(changes_.empty() == (bytes_ == 0));
}

// With the lock. A reader that has not read the dropped change has to look at the whole tree: no later change is kept
// for that reader either.
void cache_board::drop_oldest(change_list& into) {
    take_first(into);
    readers_.erase(readers_.begin(), readers_.lower_bound(first_change_));
    drop_read(into);
}

// With the lock.
void cache_board::drop_read(change_list& into) {
    const std::uint64_t end = first_change_ + changes_.size();
    const std::uint64_t first_unread = readers_.empty() ? end : *readers_.begin();
    while (first_change_ < first_unread) take_first(into);
}

// With the lock.
void cache_board::leave(const position& of) noexcept {
    if (!of.begun || misses_some(of)) return;
    const auto known = readers_.find(of.change);
    assert(known != readers_.end() && "a reader that has begun, and misses no change, is known");
    readers_.erase(known);
}

void cache_board::forget(const position& of) noexcept {
    change_list dropped;
    const std::lock_guard lock(mutex_);
    leave(of);
    drop_read(dropped);
}

std::size_t cache_board::kept() const {
    const std::lock_guard lock(mutex_);
    return changes_.size();
}

void cache_board::close(std::error_code why, std::string_view hint) {
    change_list dropped;
    std::unique_lock lock(mutex_);
    if (closed_) return;
    std::shared_ptr<snapshot> last;
    if (latest_ && latest_->current) {
        last = std::make_shared<snapshot>(*latest_);
        last->current = false;
        ++last->version;
    }
    closed_ = why;
    hint_ = hint;
    readers_.clear();  // news() throws from now on
    ++first_change_;
    first_change_ += changes_.size();
    bytes_ = 0;
    dropped.swap(changes_);
    if (last) latest_ = std::move(last);
    change_.notify_all(std::move(lock));
}

tree_view cache_board::latest() const {
    const std::lock_guard lock(mutex_);
    return make_view::tree(latest_);
}

// With the lock.
void cache_board::check() const {
    if (closed_) throw error(closed_, "cache", path_, hint_);
}

bool cache_board::ready() const {
    const std::lock_guard lock(mutex_);
    if (latest_ && latest_->ready) return true;
    check();
    return false;
}

std::optional<cache_update> cache_board::news(position& of) {
    change_list dropped;
    const std::lock_guard lock(mutex_);
    check();
    const bool ready = latest_ && latest_->ready;
    if (!ready || (of.begun && of.notice == notice_)) return std::nullopt;
    cache_update update;
    update.now = make_view::tree(latest_);
    update.look_again = !of.begun || misses_some(of);
    const std::uint64_t end = first_change_ + changes_.size();
    if (!update.look_again) {
        update.changes.reserve(static_cast<std::size_t>(end - of.change));
        for (std::uint64_t i = of.change; i < end; ++i) {
            const tree_delta& change = changes_[static_cast<std::size_t>(i - first_change_)];
            update.changes.push_back({change.path, make_view::node(change.before), make_view::node(change.after)});
        }
    }
    readers_.insert(end);
    leave(of);
    of = {true, notice_, end};
    drop_read(dropped);
    return update;
}

asio::awaitable<cache_update> cache_reader::next(std::shared_ptr<cache_reader> self) {
    if (!self) throw error(errc::invalid_argument, "cache", {}, "these changes were moved from");
    const auto turn = self->reading_.begin("cache", self->board_->path(), "next() of these changes");
    const auto news = [self] { return self->board_->news(self->at_); };
    std::optional<cache_update> update = co_await self->board_->changes().until(news, "next", self->board_->path());
    co_return std::move(*update);
}

asio::awaitable<void> cache_board::until_ready(std::shared_ptr<cache_board> board) {
    const auto ready = [board] { return board->ready(); };
    co_await board->changes().until(ready, "ready", board->path());
    co_await yield_turn();
}

}  // namespace zkasio::cache_detail

namespace zkasio {

asio::awaitable<cache_update> cache_changes::next() const { return cache_detail::cache_reader::next(reader_); }

}  // namespace zkasio
