// How a claimer claims items that it knows to be free.

#include <zkasio/queues/detail/claimer.hpp>

#include <zkasio/coroutines/result.hpp>
#include <zkasio/error.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/queues/detail/queue_state.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::queue_detail {
namespace {

constexpr std::size_t most_bytes_ahead = 64 * 1024;  // behind a larger batch, nothing is read ahead
constexpr int most_late = 10;

std::chrono::milliseconds waited_until(const committed& claimed, const read_item& item) {
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(claimed.at.time_since_epoch());
    return std::max(std::chrono::milliseconds::zero(), at - std::chrono::milliseconds(item.ctime));
}

// Until this process or an operator mends it.
bool is_lasting(const error& e) { return is_lasting_refusal(e) || e.code() == errc::too_many_ephemerals; }

bool is_below(const std::string& path, const std::string& directory) {
    return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

}  // namespace

asio::awaitable<void> claimer::claim_some() {
    was_refused_ = false;
    step_aside();
    const std::size_t most = std::min(limit_.at_once(), room_for_claims());
    if (most == 0) co_return;
    std::vector<read_item> batch = co_await read_first(count_consumers(most));
    co_await set_aside(batch);
    if (!batch.empty() && !was_refused_ && has_consumers()) co_await try_claim(std::move(batch));
}

// W4. The names of items have nearly the same length.
std::size_t claimer::room_for_claims() const {
    const std::size_t path_bytes = free_.empty() ? 0 : what_->claim(free_.first(1).front()).size();
    return toolbox(on_).room_for_claims(what_->claims, path_bytes);
}

// The next turn of serve() waits for it.
bool claimer::will_have_room(const error& why) const {
    return why.code() == errc::too_many_ephemerals && room_for_claims() == 0;
}

void claimer::wait_for_room() {
    if (!has_consumers() || std::exchange(waits_for_room_, true)) return;
    toolbox(on_).when_room_is_released([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        self->waits_for_room_ = false;
        if (self->has_consumers()) self->begin();
    });
}

// Of processes that all claim the first item, the one with the slowest connection would never get any, and each would
// read what the others have claimed: a process that was late n times more often than it was in time begins behind up to
// 2^n - 1 free items, a random number of them.
void claimer::step_aside() {
    if (late_ == 0 || free_.size() < 2) return;
    const std::size_t most = std::min(std::size_t{1} << late_, free_.size()) - 1;
    const std::size_t n = std::uniform_int_distribution<std::size_t>(0, most)(dice_);
    if (n > 0) free_.step_over(n);
}

bool claimer::is_spent(const read_item& item) const noexcept {
    const int most = what_->options.most_deliveries();
    return most > 0 && item.is_counted && item.version >= most;
}

// Takes the items out of the batch that are not handed out: an item that was delivered too often, or that does not have
// one value, is replaced.
asio::awaitable<void> claimer::set_aside(std::vector<read_item>& batch) {
    std::vector<read_item> usual, odd;
    for (read_item& item : batch) {
        const bool has_one_value = what_->payload.has_one_value(item.data);
        if (!has_one_value && !item.is_counted)
            // No transaction has room for the data of its substitute.
            leave_alone(item.name, boot_clock::time_point::max(),
                        "the data are not one value, and too large to be moved");
        else
            (is_spent(item) || !has_one_value ? odd : usual).push_back(std::move(item));
    }
    batch = std::move(usual);
    for (std::size_t i = 0; i < odd.size() && !was_refused_; ++i) {
        transaction steps;
        // The create is refused if another consumer has claimed the item.
        steps.create(what_->claim(odd[i].name), bytes(), what_->of_mode(create_mode::ephemeral));
        steps.remove(what_->claim(odd[i].name)).remove(what_->item(odd[i].name), odd[i].version);
        add_substitute(steps, odd[i]);
        committed done;
        const std::optional<error> failed = co_await apply(begin_commit(commit_kind::bury), std::move(steps), done);
        if (failed && leave_alone_if_refused(*failed, odd[i].name)) continue;
        if (failed && will_have_room(*failed)) {
            batch.clear();
            co_return;
        }
        if (failed && is_lasting(*failed)) throw error(*failed);
        free_.remove(odd[i].name);
        if (!failed) continue;
        ahead_.clear();  // read at about the same time as this item, so likely outdated as well
        free_.changed();
        const bool no_directory = failed->code() == zk_errc::no_node && parent_path(failed->path()) == what_->dead;
        if (no_directory) co_await create_directories(on_, what_);
    }
}

// The item stays where it is. Warns once of it, at the end of the round, also if it is left alone again and again.
void claimer::leave_alone(const std::string& name, boot_clock::time_point until, const std::string& why) {
    ahead_.erase(name);
    if (free_.refuse_until(name, until)) refused_.add(name, why);
}

// W1. Whether the servers have refused the item, or the nodes that would take its place, to this client. Other nodes
// are those of all items: the claims, and the receipts.
bool claimer::leave_alone_if_refused(const error& why, const std::string& name) {
    const std::string& path = why.path();
    const bool is_about_item = is_below(path, what_->dead) || (is_below(path, what_->items) && path != what_->claims);
    if (!is_about_item || !is_lasting_refusal(why)) return false;
    leave_alone(name, boot_clock::now() + until_tried_again, why.what());
    return true;
}

// Adds what takes the place of an item that is not handed out: a dead item, or an item for each value.
void claimer::add_substitute(transaction& steps, const read_item& item) const {
    if (is_spent(item)) return add_dead(steps, *what_, item, "delivered " + std::to_string(item.version) + " times");
    const std::optional<std::vector<std::string>> values = what_->payload.unpack(item.data);
    if (!values) return add_dead(steps, *what_, item, "the data are not framed as those of Curator's items");
    std::vector<bytes> items(values->begin(), values->end());
    const std::string prefix(what_->names.prefix_of(item.name));
    if (!items.empty() && count_for_transaction(items, 0, *what_, prefix) < items.size())
        return add_dead(steps, *what_, item, "more values than one transaction takes");
    for (bytes& value : items) add_put(steps, *what_, what_->item(prefix), std::move(value));
}

// The first items that still exist, with their data.
asio::awaitable<std::vector<read_item>> claimer::read_first(std::size_t n) {
    read_ahead(0, n);
    std::vector<read_item> items;
    limit_.begin();
    const std::vector<std::string> names = free_.first(n);
    std::size_t gone = 0;
    for (const std::string& name : names) {
        std::optional<read_item> item;
        std::optional<error> failed;
        try {
            item = co_await read(name);
        } catch (const error& e) {
            failed.emplace(e);
        }
        if (failed && !leave_alone_if_refused(*failed, name)) throw error(*failed);
        if (failed) continue;
        if (!item) {
            free_.remove(name);
            has_collided_ = true;
            ++gone;
            continue;
        }
        if (!limit_.takes(item->data.size() + item->name.size())) break;
        items.push_back(std::move(*item));
    }
    limit_.end();
    if (gone > 0 && items.empty()) late_ = std::min(late_ + 1, most_late);
    if (gone > 1 && 2 * gone >= names.size()) {
        free_.leave_out_next(items.size(), names.size());
        ahead_.clear();
        claims_while_alone_ = 0;
    }
    // Of several processes that contend, each claims what the others have read ahead.
    const bool is_alone = claims_while_alone_ >= claims_until_alone;
    if (is_alone && limit_.bytes() <= most_bytes_ahead) read_ahead(items.size(), n);
    co_return items;
}

// Starts to read n items, without waiting for them. The first `skipped` items are about to be claimed, which changes
// their versions: the items to be read begin behind them.
void claimer::read_ahead(std::size_t skipped, std::size_t n) {
    std::vector<std::string> names = free_.first(skipped + n), paths;
    names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(skipped, names.size())));
    std::erase_if(names, [&](const std::string& name) { return ahead_.contains(name); });
    for (const std::string& name : names) paths.push_back(what_->item(name));
    std::vector<pending_data> asked = toolbox(on_).start_gets(std::move(paths));
    for (std::size_t i = 0; i < names.size(); ++i) ahead_.emplace(std::move(names[i]), std::move(asked[i]));
}

// Returns nothing if the item does not exist any more.
asio::awaitable<std::optional<read_item>> claimer::read(std::string name) {
    std::optional<pending_data> asked;
    if (const auto it = ahead_.find(name); it != ahead_.end()) {
        asked = std::move(it->second);
        ahead_.erase(it);
    }
    std::optional<node_data> found;
    bool answered = false;
    try {
        if (asked) {
            found = co_await if_exists(asked->result());
            answered = true;
        }
    } catch (const error& e) {
        if (e.code() != condition::retryable) throw;
    }
    if (!answered) found = co_await if_exists(on_.get(what_->item(name)));
    if (!found) co_return std::nullopt;
    read_item item;
    item.name = std::move(name);
    item.data = std::move(found->data);
    item.czxid = found->stat.czxid;
    item.version = found->stat.version;
    item.ctime = found->stat.ctime;
    item.is_counted = what_->can_write_again(item.data);
    co_return item;
}

// Writing an item's data again counts the claim in the version of the item.
transaction claimer::steps_to_claim(const std::vector<read_item>& batch) const {
    transaction steps;
    for (const read_item& item : batch) {
        if (item.is_counted)
            steps.set(what_->item(item.name), bytes(item.data), item.version);
        else
            steps.check(what_->item(item.name), item.version);
        steps.create(what_->claim(item.name), bytes(), what_->of_mode(create_mode::ephemeral));
        steps.set(what_->claim(item.name), bytes(id_), 0);  // item_claim::node_version
    }
    return steps;
}

// Claims all items of the batch, or none; of those that have room (W4).
asio::awaitable<void> claimer::try_claim(std::vector<read_item> batch) {
    committed done;
    std::optional<error> failed;
    for (;;) {
        commit_report r = begin_commit(commit_kind::claim);
        r.parts = batch.size();
        failed = co_await apply(std::move(r), steps_to_claim(batch), done);
        if (!failed || failed->code() != errc::too_many_ephemerals) break;
        // Other nodes were faster since room_for_claims().
        const auto without_room = std::find_if(batch.begin(), batch.end(), [&](const read_item& item) {
            return failed->path() == what_->claim(item.name);
        });
        if (without_room == batch.begin() || without_room == batch.end()) break;
        batch.erase(without_room, batch.end());
    }
    if (failed && will_have_room(*failed)) co_return;
    if (failed && failed->outcome_unknown()) co_await give_back_unknown(batch);
    if (failed && failed->hung_up() && batch.size() > 1) {
        limit_.was_too_large();
        co_return;
    }
    if (failed && is_lasting(*failed)) {
        for (const read_item& item : batch)
            if (failed->path() == what_->item(item.name) && leave_alone_if_refused(*failed, item.name)) co_return;
        throw error(*failed);
    }
    if (failed) {
        leave_out(*failed, batch);
        co_return;
    }
    for (read_item& item : batch) item.waited = waited_until(done, item);
    const std::vector<item_claim_ptr> unwanted = hand_out(std::move(batch), done.zxid);
    for (const item_claim_ptr& claim : unwanted) claim->give_up();
    for (const item_claim_ptr& claim : unwanted) co_await claim->gone();
    if (!unwanted.empty()) free_.changed();
}

// Returns the error of a step that was refused because of another client, or for a reason that lasts; throws others.
asio::awaitable<std::optional<error>> claimer::apply(commit_report r, transaction steps, committed& done) {
    std::optional<error> failed;
    std::exception_ptr why;
    try {
        done = co_await receipts_.apply(std::move(steps), "receive");
    } catch (const error& e) {
        why = std::current_exception();
        const bool by_another_client = e.code() == zk_errc::no_node || e.code() == zk_errc::bad_version ||
                                       e.code() == zk_errc::node_exists ||
                                       (e.code() == zk_errc::connection_loss && !e.hung_up());
        was_refused_ = by_another_client;
        if (by_another_client || is_lasting(e)) failed.emplace(e);
    }
    r.conflicts = was_refused_ ? 1 : 0;
    report_commit(on_, std::move(r), what_->path, why);
    if (why && !failed) std::rethrow_exception(why);
    if (was_refused_) {
        claims_while_alone_ = 0;
        has_collided_ = true;
    }
    if (!failed) {
        ++claims_while_alone_;
        late_ = std::max(late_ - 1, 0);
    }
    co_return failed;
}

// Another client has removed the receipt while the answer was lost: this session may have claimed the items. Gives back
// the items that it has claimed.
asio::awaitable<void> claimer::give_back_unknown(std::vector<read_item> batch) {
    co_await on_.sync(what_->claims);
    for (read_item& item : batch) {
        const std::optional<node_stat> claim = co_await on_.exists(what_->claim(item.name));
        if (!claim || claim->ephemeral_owner != on_.id()) continue;
        // A view of this client, see client::rooted(), has a claimer of its own in this session.
        const result<node_data> whose = co_await as_result(on_.get(what_->claim(item.name)));
        if (whose && whose->data != id_) continue;
        if (item.is_counted) ++item.version;
        report_commit(on_, begin_commit(commit_kind::claim), what_->path, nullptr);  // was reported as a failure
        // The destructor of the claim gives the item back.
        item_claim::make(on_, what_, receipts_, std::move(item), claim->czxid);
    }
}

// Gives the claims to the waiting consumers. Returns the claims for which no consumer is left.
std::vector<item_claim_ptr> claimer::hand_out(std::vector<read_item> claimed, std::int64_t token) {
    std::vector<item_claim_ptr> unwanted;
    has_won_ = true;
    std::erase_if(own_, [](const auto& claim) { return claim.expired(); });
    for (read_item& item : claimed) {
        free_.remove(item.name);
        if (item.is_counted) ++item.version;
        item.data = what_->payload.value_or_all(std::move(item.data));
        item_claim_ptr claim = item_claim::make(on_, what_, receipts_, std::move(item), token);
        own_.push_back(claim);
        if (const awaited_item_ptr consumer = next_consumer()) {
            if (consumer->wants_item())
                toolbox(on_).run_in_background(take_out(shared_from_this(), std::move(claim), consumer));
            else
                consumer->succeed(std::move(claim));
        } else
            unwanted.push_back(std::move(claim));
    }
    return unwanted;
}

// Removes the item from the queue, and gives the data to the consumer, or, if the consumer leaves meanwhile, to another
// one. A consumer that has left before the request is sent leaves the item in the queue.
asio::awaitable<void> claimer::take_out(std::shared_ptr<claimer> self, item_claim_ptr claim,
                                        awaited_item_ptr consumer) {
    if (!consumer->begin_removal()) co_return;  // the destructor of the claim gives the item back
    std::exception_ptr failed;
    try {
        co_await item_claim::finish(claim, transaction(), "take");
    } catch (...) {
        failed = std::current_exception();
    }
    std::string item = claim->item().data;
    if (failed)
        consumer->fail(failed);
    else if (!consumer->succeed_with(item))
        self->keep_taken(std::move(item));
}

void claimer::leave_out(const error& why, const std::vector<read_item>& batch) {
    ahead_.clear();  // read at about the same time as this batch, so likely outdated as well
    const auto it = std::find_if(batch.begin(), batch.end(), [&](const read_item& item) {
        return why.path() == what_->item(item.name) || why.path() == what_->claim(item.name);
    });
    // The error is not about an item, but about a directory or a receipt.
    if (it == batch.end()) return free_.forget();
    late_ = std::min(late_ + 1, most_late);
    free_.leave_out(it->name, batch.size());
}

}  // namespace zkasio::queue_detail
