#include <zkasio/queues/detail/claimer.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::size_t many_items = 20'000;
constexpr std::chrono::milliseconds longest_spread(300);  // W3
constexpr std::chrono::milliseconds round_trips(100);  // of a far process: a listing, a read, and a claim
constexpr std::chrono::hours longest_pause(24 * 365 * 100);  // a timer cannot count many more

std::string new_id() {
    std::string id = new_protection_id();
    std::erase(id, '-');
    return id;
}

}  // namespace

claimer::claimer(const session& on, spec_ptr what)
    : on_(on.patient()),
      what_(std::move(what)),
      receipts_(on_, what_->receipts, what_->options.acl(), missing_parents::create_persistent),
      id_(new_id()),
      later_(on_, what_, receipts_, [this] {
          later_has_news_ = true;
          begin_in_turn();
      }),
      clock_(on_, receipts_, [this] { look_again(); }),
      dice_(static_cast<std::minstd_rand::result_type>(std::hash<std::string>()(id_))) {}

std::shared_ptr<claimer> claimer::of(const session& on, const spec_ptr& what) {
    const auto make = [&] { return std::make_shared<claimer>(on, what); };
    return std::static_pointer_cast<claimer>(toolbox(on).local("work_queue " + what->key(), make));
}

// ----------------------------------------------------------------------------------------------------------- consumers

void claimer::enter(awaited_item_ptr consumer) {
    if (serve_taken(*consumer)) return;
    if (consumers_.size() > 2 * swept_ + 64) {
        std::erase_if(consumers_, [](const awaited_item_ptr& c) { return !c->is_waiting(); });
        swept_ = consumers_.size();
    }
    consumers_.push_back(std::move(consumer));
    begin();
}

void claimer::left() noexcept {
    if (has_consumers()) return;
    next_look_.reset();
    turn_.reset();
    if (serving_ || (!free_.empty() && !self_)) return;  // with self_, there may be no user any more
    later_.forget();
    clock_.forget();
    items_watch_ = watch();
    claims_watch_ = watch();
    free_.forget();
    ahead_.clear();
}

void claimer::session_over(std::error_code why) noexcept {
    fail_all(std::make_exception_ptr(error(why, "receive", what_->path)));
    later_.forget();
    clock_.forget();
    next_look_.reset();
    turn_.reset();
    pauses_.clear();
    const std::shared_ptr<claimer> kept = std::move(self_);
    if (!taken_.empty() && why == errc::session_expired)
        toolbox(on_).run_in_background(carry_over(on_, what_, std::move(taken_)));
    taken_.clear();
}

void claimer::loop_over() noexcept {
    const std::shared_ptr<claimer> kept = std::move(self_);
    next_look_.reset();
    turn_.reset();
}

void claimer::return_after(std::chrono::milliseconds pause, item_claim_ptr claim) {
    if (on_.over()) return;
    pause = std::min<std::chrono::milliseconds>(pause, longest_pause);
    if (pauses_.size() >= most_resting) {
        free_.leave_out_until(claim->item().name, boot_clock::now() + pause);
        return claim->return_item();
    }
    const auto timer = std::make_shared<asio::steady_timer>(on_.get_executor());
    timer->expires_after(pause);
    pauses_.emplace(timer, std::move(claim));
    timer->async_wait(
        [self = shared_from_this(), weak = std::weak_ptr<asio::steady_timer>(timer), pause](std::error_code cancelled) {
            const auto over = weak.lock();
            if (cancelled || !over) return;
            const item_claim_ptr rested = self->pauses_.extract(over).mapped();
            const auto others_first = std::min<std::chrono::milliseconds>(pause, longest_spread + round_trips);
            self->free_.leave_out_until(rested->item().name, boot_clock::now() + others_first);
            rested->return_item();
        });
}

// A claim that pauses has no user.
bool claimer::waits() noexcept {
    for (const auto& [timer, claim] : pauses_) claim->return_item();
    pauses_.clear();
    return false;
}

bool claimer::has_consumers() noexcept {
    while (!consumers_.empty() && !consumers_.front()->is_waiting()) consumers_.pop_front();
    return !consumers_.empty();
}

std::size_t claimer::count_consumers(std::size_t most) const noexcept {
    std::size_t n = 0;
    for (auto it = consumers_.begin(); it != consumers_.end() && n < most; ++it) n += (*it)->is_waiting();
    return n;
}

awaited_item_ptr claimer::next_consumer() {
    while (!consumers_.empty()) {
        const awaited_item_ptr next = std::move(consumers_.front());
        consumers_.pop_front();
        if (next->serve()) return next;
    }
    return nullptr;
}

void claimer::tell_impatient_ones() {
    std::erase_if(consumers_, [](const awaited_item_ptr& c) {
        if (c->waits_for_items()) return false;
        if (c->serve()) c->succeed(nullptr);
        return true;
    });
}

void claimer::fail_all(const std::exception_ptr& why) noexcept {
    while (const awaited_item_ptr c = next_consumer()) c->fail(why);
}

// ---------------------------------------------------------------------------------- items of cancelled calls of take()

// The item is no longer in the queue: it is given to the take() that waits, or that comes next.
void claimer::keep_taken(std::string item) {
    taken_.push_back(std::move(item));
    if (on_.over()) return toolbox(on_).run_in_background(carry_over(on_, what_, std::exchange(taken_, {})));
    self_ = shared_from_this();
    for (std::size_t i = 0; i < consumers_.size() && !taken_.empty(); ++i) serve_taken(*consumers_[i]);
    if (!has_consumers()) left();
}

// Whether the consumer has got such an item.
bool claimer::serve_taken(awaited_item& consumer) {
    if (taken_.empty() || !consumer.wants_item() || !consumer.serve()) return false;
    std::string item = std::move(taken_.front());
    taken_.pop_front();
    const bool has_left = !consumer.succeed_with(item);
    if (has_left) taken_.push_front(std::move(item));
    if (taken_.empty()) asio::post(on_.get_executor(), [kept = std::move(self_)]() mutable { kept.reset(); });
    return !has_left;
}

// The items go to the claimer of the next session. They are lost with the client.
asio::awaitable<void> claimer::carry_over(session on, spec_ptr what, std::deque<std::string> taken) {
    std::optional<session> next;
    auto wait = [&]() -> asio::awaitable<void> {
        session s = co_await toolbox(on).current_session("take", what->path);
        next.emplace(std::move(s));
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), wait);
    const std::shared_ptr<claimer> c = of(*next, what);
    for (std::string& item : taken) c->keep_taken(std::move(item));
}

// ------------------------------------------------------------------------------------------------------------- serving

void claimer::begin() {
    if (std::exchange(serving_, true)) return;
    try {
        toolbox(on_).run_in_background(run(shared_from_this()));
    } catch (...) {
        serving_ = false;
        fail_all(std::current_exception());
    }
}

// Serves until no consumer waits, or no item is free: then the watches and the timers call begin() again.
asio::awaitable<void> claimer::run(std::shared_ptr<claimer> self) {
    std::exception_ptr failed;
    try {
        co_await self->serve();
    } catch (...) {
        failed = std::current_exception();
    }
    assert(self->serving_);  // one at a time
    self->serving_ = false;
    self->refused_.tell(self->on_, self->what_->path, "");
    self->note_turn();
    if (failed) self->fail_all(failed);
    self->left();
}

// W3. The client's pauses set the scale. A turn in vain after a claim of this session has ended tells nothing.
void claimer::note_turn() {
    const bool is_own = !own_.empty();
    std::erase_if(own_, [](const auto& claim) { return claim.expired(); });
    const bool has_won = std::exchange(has_won_, false), has_collided = std::exchange(has_collided_, false);
    if (!std::exchange(was_woken_, false)) return;
    if (!has_won && !is_own) claims_while_alone_ = 0;
    if (claims_while_alone_ >= claims_until_alone) {
        spread_ = spread_.zero();
    } else if (has_won || has_collided) {
        const std::chrono::milliseconds more = toolbox(on_).make_back_off().next() / 10;
        spread_ = std::min(spread_ + (has_won ? more : std::max(spread_, more)), longest_spread);
    } else {
        spread_ -= (spread_ + std::chrono::milliseconds(15)) / 16;
    }
}

asio::awaitable<void> claimer::serve() {
    back_off pauses = toolbox(on_).make_back_off();
    was_refused_ = false;
    bool is_first = true;
    for (int in_vain = 0; has_consumers(); ++in_vain) {
        if (in_vain > 1) co_await pauses.pause();
        if (!free_.empty() && room_for_claims() == 0) {
            tell_impatient_ones();
            co_return wait_for_room();
        }
        later_has_news_ = false;
        co_await later_.move_due();
        if (free_.must_list(boot_clock::now())) co_await list(std::exchange(is_first, false));
        if (!free_.empty()) {
            co_await claim_some();
            if (was_refused_) continue;
            in_vain = 0;
            pauses.reset();
        } else if (!free_.must_list(boot_clock::now()) && !later_has_news_) {
            tell_impatient_ones();
            if (has_consumers() && free_.next_return() != boot_clock::time_point::max())
                look_again_at(free_.next_return());
            co_return;
        }
    }
}

// The watches are set before the servers answer: free_.changed() is called for all that the answers do not show.
// @param likely_empty the claims of an empty queue do not matter, and each process that waits would list them after
// each item: the items first. Else the claims first: an item that is done between the two is not taken for a free one.
asio::awaitable<void> claimer::list(bool likely_empty) {
    if (was_refused_) co_await on_.sync(what_->items);
    back_off pauses = toolbox(on_).make_back_off();
    for (;;) {
        free_.begin_listing();
        std::optional<node_children> items;
        node_children claims;
        bool exist = false;
        try {
            if (!likely_empty) claims = co_await list_and_watch(what_->claims, claims_watch_);
            items = co_await list_and_watch(what_->items, items_watch_);
            if (likely_empty && !items->names.empty())
                claims = co_await list_and_watch(what_->claims, claims_watch_);
            exist = true;
        } catch (const error& e) {
            free_.changed();
            if (e.code() != zk_errc::no_node) throw;
        }
        if (exist) {
            if (!claims.names.empty())
                toolbox(on_).remove_orphans("claims " + what_->claims, what_->claims,
                                            [](const std::string&) { return true; });
            warn_of_many(items->names.size());
            std::vector<std::string> names = what_->names.in_order(std::move(items->names), what_->items);
            names = co_await only_due(std::move(names));
            const bool is_old = free_.must_list(boot_clock::now());
            free_.list(std::move(names), claims.names, boot_clock::now());
            if (is_old) free_.changed();
            break;
        }
        co_await create_directories(on_, what_);
        co_await pauses.pause();
    }
    const std::vector<std::string> next = free_.first(2 * most_claims);
    std::erase_if(ahead_,
                  [&](const auto& read) { return std::find(next.begin(), next.end(), read.first) == next.end(); });
}

asio::awaitable<node_children> claimer::list_and_watch(std::string directory, watch& kept) {
    watched<node_children> found = co_await on_.children_and_watch(directory);
    kept = std::move(found.changes);
    kept.then([weak = weak_from_this()](std::error_code failed, node_change) {
        const auto self = weak.lock();
        if (self && !failed) self->look_again();
    });
    co_return std::move(found.value);
}

void claimer::look_again() {
    free_.changed();
    begin_in_turn();
}

// W3
void claimer::begin_in_turn() {
    if (!has_consumers() || serving_ || turn_) return;
    was_woken_ = true;
    const auto pause = std::chrono::milliseconds(
        std::uniform_int_distribution<std::chrono::milliseconds::rep>(0, spread_.count())(dice_));
    if (pause == pause.zero()) return begin();
    begin_after(pause, &claimer::turn_);
}

// Replaces the last look_again_at().
void claimer::look_again_at(boot_clock::time_point when) {
    const auto now = boot_clock::now();
    begin_after(std::max(when, now) - now, &claimer::next_look_);
}

// Replaces what was under way with this timer.
void claimer::begin_after(boot_clock::duration pause, std::shared_ptr<asio::steady_timer> claimer::*timer) {
    const auto mine = this->*timer = std::make_shared<asio::steady_timer>(on_.get_executor());
    mine->expires_after(pause);
    mine->async_wait(
        [weak = weak_from_this(), timer, mine = std::weak_ptr<asio::steady_timer>(mine)](std::error_code cancelled) {
            const auto self = weak.lock();
            if (cancelled || !self || mine.expired()) return;
            (self.get()->*timer).reset();
            if (self->has_consumers()) self->begin();
        });
}

// Leaves out the items whose time has not come, and looks again when it has.
asio::awaitable<std::vector<std::string>> claimer::only_due(std::vector<std::string> items) {
    if (!what_->names.tell_times() || items.empty()) co_return items;
    const server_time now = co_await clock_.now();
    const auto is_due = [&](const std::string& name) { return what_->names.due(name) <= now; };
    const auto first = std::partition_point(items.begin(), items.end(), is_due);
    if (first != items.end()) clock_.wake_at(what_->names.due(*first), now);
    items.erase(first, items.end());
    co_return items;
}

void claimer::warn_of_many(std::size_t items) {
    if (items <= many_items || std::exchange(has_warned_, true)) return;
    log_warning(on_, "the work_queue " + what_->path + " has " + std::to_string(items) +
                         " items: most clients cannot list that many, and all "
                         "servers keep them in memory");
}

}  // namespace zkasio::queue_detail
