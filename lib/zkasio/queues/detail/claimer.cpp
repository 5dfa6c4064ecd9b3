#include <zkasio/queues/detail/claimer.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/directories.hpp>
#include <zkasio/recipe/log_warning.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::size_t many_items = 20'000;
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
          if (has_consumers()) begin();
      }),
      clock_(on_, receipts_, [this] { look_again(); }),
      dice_(static_cast<std::minstd_rand::result_type>(std::hash<std::string>()(id_))) {}

std::shared_ptr<claimer> claimer::of(const session& on, const spec_ptr& what) {
    const auto make = [&] { return std::make_shared<claimer>(on, what); };
    return std::static_pointer_cast<claimer>(toolbox(on).local("work_queue " + what->key(), make));
}

// ----------------------------------------------------------------------------------------------------------- consumers

void claimer::enter(awaited_item_ptr consumer) {
    consumers_.push_back(std::move(consumer));
    begin();
}

void claimer::left() noexcept {
    if (serving_ || has_consumers() || !free_.empty()) return;
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
    pauses_.clear();
}

void claimer::return_after(std::chrono::milliseconds pause, item_claim_ptr claim) {
    if (on_.over()) return;
    const auto timer = std::make_shared<asio::steady_timer>(on_.get_executor());
    timer->expires_after(std::min<std::chrono::milliseconds>(pause, longest_pause));
    pauses_.emplace(timer, std::move(claim));
    timer->async_wait(
        [self = shared_from_this(), weak = std::weak_ptr<asio::steady_timer>(timer)](std::error_code cancelled) {
            const auto over = weak.lock();
            if (cancelled || !over) return;
            self->pauses_.extract(over).mapped()->return_item();
        });
}

// A claim that pauses has no user.
bool claimer::waits() noexcept {
    for (const auto& [timer, claim] : pauses_) claim->return_item();
    pauses_.clear();
    return false;
}

bool claimer::has_consumers() {
    std::erase_if(consumers_, [](const awaited_item_ptr& c) { return !c->is_waiting(); });
    return !consumers_.empty();
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
    self->serving_ = false;
    if (failed) self->fail_all(failed);
    self->left();
}

asio::awaitable<void> claimer::serve() {
    back_off pauses = toolbox(on_).make_back_off();
    was_refused_ = false;
    for (int in_vain = 0; has_consumers(); ++in_vain) {
        if (in_vain > 1) co_await pauses.pause();
        later_has_news_ = false;
        co_await later_.move_due();
        if (free_.must_list(boot_clock::now())) co_await list();
        if (!free_.empty()) {
            co_await claim_some();
            if (was_refused_) continue;
            in_vain = 0;
            pauses.reset();
        } else if (!free_.must_list(boot_clock::now()) && !later_has_news_) {
            tell_impatient_ones();
            co_return;
        }
    }
}

// The watches are set before the servers answer: free_.changed() is called for all that the answers do not show.
asio::awaitable<void> claimer::list() {
    if (was_refused_) co_await on_.sync(what_->items);
    back_off pauses = toolbox(on_).make_back_off();
    for (;;) {
        free_.list({}, {}, boot_clock::now());  // from now on changed() counts
        std::optional<node_children> claims, items;
        try {
            claims = co_await list_and_watch(what_->claims, claims_watch_);
            items = co_await list_and_watch(what_->items, items_watch_);
        } catch (const error& e) {
            free_.changed();
            if (e.code() != zk_errc::no_node) throw;
        }
        if (items) {
            warn_of_many(items->names.size());
            std::vector<std::string> names = what_->names.in_order(std::move(items->names), what_->items);
            erase_unusable(names);
            names = co_await only_due(std::move(names));
            const bool is_old = free_.must_list(boot_clock::now());
            free_.list(std::move(names), claims->names, boot_clock::now());
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
    if (has_consumers()) begin();
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

// Forgets the unusable items that are not listed any more.
void claimer::erase_unusable(std::vector<std::string>& names) {
    if (unusable_.empty()) return;
    std::set<std::string> still_there;
    std::erase_if(names, [&](const std::string& name) {
        if (!unusable_.contains(name)) return false;
        still_there.insert(name);
        return true;
    });
    unusable_ = std::move(still_there);
}

void claimer::warn_of_many(std::size_t items) {
    if (items <= many_items || std::exchange(has_warned_, true)) return;
    log_warning(on_, "the work_queue " + what_->path + " has " + std::to_string(items) +
                         " items: most clients cannot list that many, and all "
                         "servers keep them in memory");
}

}  // namespace zkasio::queue_detail
