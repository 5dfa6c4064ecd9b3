#include <zkasio/queues/detail/later_items.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

namespace zkasio::queue_detail {
namespace {

bool is_later(const later_item& a, const later_item& b) { return std::tie(a.due, a.name) > std::tie(b.due, b.name); }

}  // namespace

later_items::later_items(session on, spec_ptr what, receipts with, std::function<void()> wake)
    : on_(std::move(on)),
      what_(std::move(what)),
      receipts_(std::move(with)),
      wake_(std::move(wake)),
      clock_(on_, receipts_, wake_) {}

void later_items::forget() noexcept {
    watch_ = watch();
    clock_.forget();
    items_.clear();
    is_old_ = true;
}

asio::awaitable<void> later_items::move_due() {
    try {
        co_await move_all_due();
    } catch (...) {
        refused_.tell(on_, what_->path, " with a delay");
        throw;
    }
    refused_.tell(on_, what_->path, " with a delay");
}

asio::awaitable<void> later_items::move_all_due() {
    back_off pauses = toolbox(on_).make_back_off();
    for (;;) {
        if (is_old_) co_await list();
        if (items_.empty()) co_return;
        const server_time now = co_await clock_.now();
        if (on_.over()) co_return;  // forget() was called meanwhile
        if (now < items_.back().due) co_return clock_.wake_at(items_.back().due, now);
        const bool moved = co_await move_some(now);
        if (moved) continue;
        co_await pauses.pause();
        co_await on_.sync(what_->later);
    }
}

asio::awaitable<void> later_items::list() {
    is_old_ = false;
    std::optional<watched<node_children>> found;
    for (;;) {
        found = co_await if_exists(on_.children_and_watch(what_->later));
        if (found) break;
        co_await create_directories(on_, what_);
    }
    watch_ = std::move(found->changes);
    watch_.then([this](std::error_code failed, node_change) {  // not called once the watch is destroyed
        if (failed) return;
        is_old_ = true;
        wake_();
    });
    items_.clear();
    std::map<std::string, server_time> still_there;
    for (std::string& name : found->value.names) {
        std::optional<later_item> item = what_->names.parse_later(std::move(name));
        if (!item) continue;
        if (const auto it = put_off_.find(item->name); it != put_off_.end()) {
            still_there.insert(*it);
            item->due = std::max(item->due, it->second);
        }
        items_.push_back(std::move(*item));
    }
    put_off_ = std::move(still_there);
    std::sort(items_.begin(), items_.end(), is_later);
}

// The items, which are among the last ones, stay where they are. Warns once of each, also if it is refused again and
// again.
void later_items::put_off(const error& why, std::vector<later_item> refused, server_time now) {
    for (later_item& item : refused) {
        const auto same = [&](const later_item& i) { return i.name == item.name; };
        if (const auto it = std::find_if(items_.rbegin(), items_.rend(), same); it != items_.rend())
            items_.erase(std::next(it).base());
        item.due = now + until_tried_again;
        if (put_off_.insert_or_assign(item.name, item.due).second) refused_.add(item.name, why.what());
        items_.insert(std::upper_bound(items_.begin(), items_.end(), item, is_later), std::move(item));
    }
}

// Moves as many items that are due as one transaction takes, and puts off those that the servers refuse. False: another
// client has moved or written one of them.
asio::awaitable<bool> later_items::move_some(server_time now) {
    std::vector<later_item> due;
    std::vector<std::string> paths;
    for (auto it = items_.rbegin(); it != items_.rend() && it->due <= now && due.size() < limit_.at_once(); ++it) {
        due.push_back(*it);
        paths.push_back(join_path(what_->later, it->name));
    }
    const std::vector<pending_data> reads = toolbox(on_).start_gets(std::move(paths));
    transaction steps;
    std::vector<later_item> moved, refused;
    std::optional<error> failed, why_refused;
    limit_.begin();
    for (std::size_t i = 0; i < due.size(); ++i) {
        const later_item& item = due[i];
        node_data found;
        try {
            found = co_await reads[i].result();
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node && e.code() != condition::retryable && !is_lasting_refusal(e)) throw;
            (is_lasting_refusal(e) ? why_refused : failed).emplace(e);
            if (!failed) refused.push_back(item);
        }
        if (failed) break;
        if (!refused.empty() && refused.back().name == item.name) continue;
        if (!limit_.takes(found.data.size())) break;
        moved.push_back(item);
        steps.remove(join_path(what_->later, item.name), found.stat.version);
        steps.create(what_->item(item.prefix), bytes(std::move(found.data)),
                     what_->of_mode(create_mode::persistent_sequential));
    }
    limit_.end();
    if (!refused.empty()) put_off(*why_refused, std::move(refused), now);
    is_old_ = is_old_ || failed;
    if (moved.empty()) co_return why_refused.has_value();
    failed.reset();
    try {
        co_await receipts_.apply(std::move(steps), "receive");
    } catch (const error& e) {
        // connection_loss: another client has removed the receipt while the answer was lost.
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::bad_version && e.code() != zk_errc::connection_loss &&
            !is_lasting_refusal(e))
            throw;
        failed.emplace(e);
    }
    if (failed && failed->hung_up() && moved.size() > 1) {
        limit_.was_too_large();
        co_return true;
    }
    if (failed && is_lasting_refusal(*failed)) {
        put_off(*failed, std::move(moved), now);
        co_return true;
    }
    if (on_.over()) co_return false;
    if (!failed) items_.resize(items_.size() - moved.size());
    is_old_ = is_old_ || failed;
    if (failed) co_await create_directories(on_, what_);
    co_return !failed;
}

}  // namespace zkasio::queue_detail
