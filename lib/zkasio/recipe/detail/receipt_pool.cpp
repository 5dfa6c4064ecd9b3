#include <zkasio/recipe/detail/receipt_pool.hpp>

#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <cassert>
#include <deque>

namespace zkasio::detail {
namespace {

// The pools that stay although no object uses them. On the strand.
class kept_pools final : public session_local {
public:
    void session_over(std::error_code) noexcept override { forget(); }
    void loop_over() noexcept override { forget(); }

    void keep(const session& on, std::shared_ptr<kept_pools> self, std::shared_ptr<receipt_pool> used) {
        if (on.over()) return;  // nothing would release the reference to itself
        self_ = std::move(self);
        if (!newest_first_.empty() && newest_first_.front() == used) return;
        std::erase(newest_first_, used);
        newest_first_.push_front(std::move(used));
        if (newest_first_.size() > receipt_pool::most) newest_first_.pop_back();
    }

private:
    void forget() noexcept {
        const auto pools = std::exchange(newest_first_, {});
        const auto alive = std::exchange(self_, nullptr);
    }

    std::shared_ptr<kept_pools> self_;
    std::deque<std::shared_ptr<receipt_pool>> newest_first_;
};

std::string key_of(const std::string& directory, const acl& entries) {
    std::string key = "receipts " + directory;
    for (const acl_entry& e : entries)
        key += ' ' + std::to_string(static_cast<int>(e.granted())) + ' ' + e.who().scheme() + ' ' + e.who().id();
    return key;
}

}  // namespace

std::shared_ptr<receipt_pool> receipt_pool::of(const session& on, const std::string& directory, const acl& entries,
                                               bool kept) {
    const toolbox tools(on);
    const auto make = [&] { return std::make_shared<receipt_pool>(on); };
    auto pool = std::static_pointer_cast<receipt_pool>(tools.local(key_of(directory, entries), make));
    if (kept) {
        const auto make_keeper = [] { return std::make_shared<kept_pools>(); };
        const auto keeper = std::static_pointer_cast<kept_pools>(tools.local("kept receipts", make_keeper));
        keeper->keep(on, keeper, pool);
    }
    return pool;
}

receipt_pool::~receipt_pool() {
    for (const receipt& r : idle_) remove(r);
}

void receipt_pool::remove(const receipt& r) const noexcept {
    toolbox(on_).ensure_removed(r.path);
}

bool receipt_pool::waits() noexcept {
    std::vector<receipt> idle;
    bool any_in_use = false;
    {
        const std::lock_guard lock(mutex_);
        idle = std::exchange(idle_, {});
        any_in_use = in_use_ > 0;
    }
    for (const receipt& r : idle) remove(r);
    return any_in_use;
}

void receipt_pool::end() noexcept {
    std::vector<one_shot_event> all;
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
        idle_.clear();
        in_use_ += waiting_.size();
        for (turn* t : std::exchange(waiting_, {})) {
            t->now_ = turn::state::has_come;
            all.push_back(*t->come_);
        }
    }
    for (const one_shot_event& come : all) come.fire();
}

// ------------------------------------------------------------------------------------------------------- turns

std::optional<one_shot_event> receipt_pool::enter(turn& t) {
    const std::lock_guard lock(mutex_);
    t.number_ = ++last_number_;
    if (over_ || in_use_ < most) {
        ++in_use_;
        take_idle(t);
        t.now_ = turn::state::has_come;
        return std::nullopt;
    }
    assert(idle_.empty());  // transactions and receipts are `most` together
    wait(t, waiting_.end());
    return t.come_;
}

// Under the mutex. False: there is none.
bool receipt_pool::take_idle(turn& t) {
    if (idle_.empty()) return false;
    t.found_.emplace(std::move(idle_.back()));
    idle_.pop_back();
    return true;
}

// Under the mutex.
void receipt_pool::wait(turn& t, std::list<turn*>::iterator in_front_of) {
    t.come_.emplace(toolbox(on_).make_one_shot_event());
    t.place_ = waiting_.insert(in_front_of, &t);
    t.now_ = turn::state::waiting;
}

// A transaction that waits does not count as one in use: of those that find no room, the last one fails, and then the
// others, one after another.
receipt_pool::entered receipt_pool::enter_again(turn& t) {
    const std::lock_guard lock(mutex_);
    if (over_) return entered::has_come;  // its requests fail
    if (take_idle(t)) return entered::has_come;
    assert(in_use_ > 0 && t.now_ == turn::state::has_come);
    if (in_use_ == 1) return entered::no;
    const auto later = [&t](const turn* other) { return other->number_ > t.number_; };
    wait(t, std::find_if(waiting_.begin(), waiting_.end(), later));  // it is one of the first
    --in_use_;
    return entered::waits;
}

void receipt_pool::leave(turn& t) noexcept {
    std::optional<one_shot_event> next;
    {
        const std::lock_guard lock(mutex_);
        if (t.now_ == turn::state::waiting) {
            waiting_.erase(t.place_);
            return;
        }
        if (t.now_ == turn::state::outside) return;
        assert(in_use_ > 0);
        if (!waiting_.empty() && !over_) {
            turn& first = *waiting_.front();
            waiting_.pop_front();
            first.found_ = std::move(t.found_);
            first.now_ = turn::state::has_come;
            next = first.come_;
        } else {
            --in_use_;
            if (t.found_ && !over_) idle_.push_back(std::move(*t.found_));
        }
    }
    if (next) next->fire();  // the coroutine of `first` may be gone by now, which its event survives
}

receipt_pool::turn::~turn() { from_->leave(*this); }

asio::awaitable<void> receipt_pool::turn::come(std::string operation, std::string directory) {
    std::optional<one_shot_event> event = from_->enter(*this);
    if (event) co_await errors_as(std::move(operation), std::move(directory), event->wait());
}

asio::awaitable<bool> receipt_pool::turn::come_again(std::string operation, std::string directory) {
    const entered how = from_->enter_again(*this);
    if (how == entered::waits) co_await errors_as(std::move(operation), std::move(directory), come_->wait());
    co_return how != entered::no;
}

}  // namespace zkasio::detail
