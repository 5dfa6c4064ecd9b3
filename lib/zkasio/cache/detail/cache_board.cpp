#include <zkasio/cache/detail/cache_board.hpp>

#include <zkasio/error.hpp>
#include <zkasio/wait_as.hpp>

#include <utility>

namespace zkasio::cache_detail {

// What goes, and there may be much of it, is destroyed behind the lock.
void cache_board::publish(snapshot next, std::vector<tree_delta> changes) {
    std::shared_ptr<const snapshot> gone;
    std::deque<tree_delta> forgotten;
    const std::size_t unheard_of = changes.size() > most_ ? changes.size() - most_ : 0;

    std::unique_lock lock(mutex_);
    const bool flips = next.current != (latest_ && latest_->current) || next.ready != (latest_ && latest_->ready);
    const bool notable = next.ready && (flips || !changes.empty());
    next.version = (latest_ ? latest_->version : 0) + 1;
    gone = std::exchange(latest_, std::make_shared<const snapshot>(std::move(next)));
    if (unheard_of > 0) {
        first_change_ += changes_.size() + unheard_of;
        forgotten.swap(changes_);
    }
    for (std::size_t i = unheard_of; i < changes.size(); ++i) changes_.push_back(std::move(changes[i]));
    for (; changes_.size() > most_; ++first_change_) {
        forgotten.push_back(std::move(changes_.front()));
        changes_.pop_front();
    }
    if (!notable) return lock.unlock();
    ++notice_;
    change_.notify_all(std::move(lock));
}

void cache_board::close(std::error_code why, std::string_view hint) {
    std::unique_lock lock(mutex_);
    if (closed_) return;
    closed_ = why;
    hint_ = hint;
    if (latest_ && latest_->current) {
        snapshot last = *latest_;
        last.current = false;
        ++last.version;
        latest_ = std::make_shared<const snapshot>(std::move(last));
    }
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

std::optional<cache_update> cache_board::news(position& of) const {
    const std::lock_guard lock(mutex_);
    check();
    const bool ready = latest_ && latest_->ready;
    if (!ready || (of.begun && of.notice == notice_)) return std::nullopt;
    cache_update update;
    update.now = make_view::tree(latest_);
    update.look_again = !of.begun || of.change < first_change_;
    const std::uint64_t end = first_change_ + changes_.size();
    if (!update.look_again) {
        update.changes.reserve(static_cast<std::size_t>(end - of.change));
        for (std::uint64_t i = of.change; i < end; ++i) {
            const tree_delta& change = changes_[static_cast<std::size_t>(i - first_change_)];
            update.changes.push_back({change.path, make_view::node(change.before), make_view::node(change.after)});
        }
    }
    of = {true, notice_, end};
    return update;
}

one_shot_event cache_board::next_change() {
    const std::lock_guard lock(mutex_);
    return change_.next();
}

asio::awaitable<cache_update> cache_reader::next(std::shared_ptr<cache_reader> self) {
    if (!self) throw error(errc::invalid_argument, "cache", {}, "these changes were moved from");
    const auto turn = self->reading_.begin("cache", self->board_->path(), "next() of these changes");
    for (;;) {
        // In this order: what comes between the two is not missed.
        const one_shot_event change = self->board_->next_change();
        if (auto update = self->board_->news(self->at_)) co_return std::move(*update);
        co_await wait_as(change, "next", self->board_->path());
    }
}

asio::awaitable<void> cache_board::until_ready(std::shared_ptr<cache_board> board) {
    for (;;) {
        const one_shot_event change = board->next_change();
        if (board->ready()) co_return;
        co_await wait_as(change, "ready", board->path());
    }
}

}  // namespace zkasio::cache_detail

namespace zkasio {

asio::awaitable<cache_update> cache_changes::next() const { return cache_detail::cache_reader::next(reader_); }

}  // namespace zkasio
