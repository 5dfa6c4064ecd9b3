#pragma once

#include <zkasio/queues/detail/due_clock.hpp>
#include <zkasio/queues/detail/item_claim.hpp>
#include <zkasio/queues/detail/item_list.hpp>
#include <zkasio/queues/detail/later_items.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::queue_detail {

/// What a consumer does while no item is free.
enum class when_empty {
    wait,
    give_up,
};

/// What a consumer is given.
enum class wanted {
    claim,
    item,  ///< its data, when it is removed from the queue
};

/// One consumer that wants an item: made by the consumer's coroutine, and served by a claimer.
class awaited_item {
public:
    /// Until the outcome is there, either side may go first: the claimer serves the consumer, or the consumer leaves.
    enum class state {
        waiting,
        served,    ///< chosen by the claimer, which will tell the outcome
        removing,  ///< a request may have removed the item that this consumer wants
        done,      ///< the outcome is there
        left,      ///< the consumer does not wait any more, and reads no outcome
    };

    awaited_item(when_empty how, wanted what, one_shot_event done) : how_(how), what_(what), done_(std::move(done)) {}

    bool waits_for_items() const noexcept { return how_ == when_empty::wait; }
    bool wants_item() const noexcept { return what_ == wanted::item; }
    const one_shot_event& done() const noexcept { return done_; }

    // The claimer's side:

    bool is_waiting() const noexcept { return state_ == state::waiting; }
    /// False: the consumer has left.
    bool serve() noexcept { return go_on(state::waiting, state::served); }
    /// To be called after serve(), before the request that removes the item. False: the consumer has left.
    bool begin_removal() noexcept { return is_removal_ = go_on(state::served, state::removing); }

    // After serve(), one of these, once.
    /// @param claim null: no item is free. If the consumer has left, the claim is dropped, which gives the item back.
    void succeed(item_claim_ptr claim) noexcept {
        claim_ = std::move(claim);
        if (!finish()) claim_ = nullptr;
    }
    /// False: the consumer has left, and `item` is as it was.
    bool succeed_with(std::string& item) noexcept {
        item_.emplace(std::move(item));
        if (finish()) return true;
        item = std::move(*item_);
        return false;
    }
    void fail(std::exception_ptr why) noexcept {
        failed_ = std::move(why);
        finish();
    }

    // The consumer's side:

    /// Returns the state before. state::done: the outcome is there after all, and may be read.
    state leave() noexcept {
        state now = state_;
        while (now != state::done && !state_.compare_exchange_weak(now, state::left)) {
        }
        return now;
    }
    /// In state::done: whether the outcome is that of a removal.
    bool was_removal() const noexcept { return is_removal_; }
    /// In state::done, once. Throws if the claimer has failed.
    item_claim_ptr take_claim(const std::string& operation, const std::string& path) {
        if (failed_) rethrow_to_caller(failed_, operation, path);
        return std::move(claim_);
    }
    /// As take_claim(). Nothing: no item was free.
    std::optional<std::string> take_item(const std::string& operation, const std::string& path) {
        if (failed_) rethrow_to_caller(failed_, operation, path);
        return std::move(item_);
    }

private:
    bool go_on(state from, state to) noexcept { return state_.compare_exchange_strong(from, to); }
    bool finish() noexcept {
        if (!go_on(state::served, state::done) && !go_on(state::removing, state::done)) return false;
        done_.fire();
        return true;
    }

    const when_empty how_;
    const wanted what_;
    const one_shot_event done_;
    std::atomic<state> state_{state::waiting};
    // Written before state::done, by the claimer:
    item_claim_ptr claim_;  // dropped, it gives the item back
    std::optional<std::string> item_;
    std::exception_ptr failed_;
    bool is_removal_ = false;
};
using awaited_item_ptr = std::shared_ptr<awaited_item>;

/// Claims items for all consumers of one session that wait at one queue: one listing, one watch of each directory and
/// one transaction at a time, however many consumers there are. Consumers are served in the order in which they came.
/// While no item is free, only the watches are left. On the strand.
///
/// The rules, of which W3 is for processes that wait at the same empty queue, and would all list it after each item:
///
/// - W1: an item that the servers refuse to this client is left out, and tried again after a pause: other items are not
///   held up. A refusal that concerns all items fails the consumers.
/// - W2: a claim with a pause stays for that pause, but no more than most_resting of them: the ephemeral nodes of a
///   session are bounded, and another process may have the other items. This process leaves these out for the pause.
///   When the claim is given back, the other processes are the first to look: a process whose bodies fail would claim
///   its items again before a far one has heard of them.
/// - W3: a session whose watch fires waits for a random part of its spread before it looks. The spread doubles when
///   another process was faster by so little that both tried to claim, grows a little when this process was the faster
///   one, so that each gets its share, and else shrinks. So of the processes that wait at an empty queue, nearly all
///   list once for an item, when the queue is empty again. A process that is alone has no spread.
/// - W4: of a batch, as many items are claimed as client_options::ephemeral_budget() has room for. While this session
///   has claims, or other nodes that will go, further consumers wait for room; else they fail, and the error names the
///   claim that has no room.
class claimer final : public session_local, public std::enable_shared_from_this<claimer> {
public:
    claimer(const session& on, spec_ptr what);

    /// The claimer of this session, made when there is none. Kept by its users.
    static std::shared_ptr<claimer> of(const session& on, const spec_ptr& what);

    static constexpr std::size_t most_resting = 32;

    void enter(awaited_item_ptr consumer);
    /// A consumer has withdrawn: without consumers and known items, the watches are given up.
    void left() noexcept;
    /// Gives a claim back when `pause` has passed, unless the session ends before; at once as W2 says.
    void return_after(std::chrono::milliseconds pause, item_claim_ptr claim);
    void session_over(std::error_code why) noexcept override;
    bool waits() noexcept override;
    void loop_over() noexcept override;

private:
    static constexpr std::size_t most_claims = 32;  // in one transaction
    static constexpr std::size_t claims_until_alone = 16;

    void begin();
    static asio::awaitable<void> run(std::shared_ptr<claimer> self);
    asio::awaitable<void> serve();
    asio::awaitable<void> list(bool likely_empty);
    asio::awaitable<node_children> list_and_watch(std::string directory, watch& kept);
    asio::awaitable<std::vector<std::string>> only_due(std::vector<std::string> items);
    void look_again();
    void begin_in_turn();
    void note_turn();
    void look_again_at(boot_clock::time_point when);
    void begin_after(boot_clock::duration pause, std::shared_ptr<asio::steady_timer> claimer::*timer);
    void warn_of_many(std::size_t items);

    asio::awaitable<void> claim_some();
    std::size_t room_for_claims() const;
    bool will_have_room(const error& why) const;
    void wait_for_room();
    void step_aside();
    bool is_spent(const read_item& item) const noexcept;
    asio::awaitable<void> set_aside(std::vector<read_item>& batch);
    void leave_alone(const std::string& name, boot_clock::time_point until, const std::string& why);
    bool leave_alone_if_refused(const error& why, const std::string& name);
    void add_substitute(transaction& steps, const read_item& item) const;
    asio::awaitable<std::vector<read_item>> read_first(std::size_t n);
    asio::awaitable<std::optional<read_item>> read(std::string name);
    void read_ahead(std::size_t skipped, std::size_t n);
    transaction steps_to_claim(const std::vector<read_item>& batch) const;
    asio::awaitable<void> try_claim(std::vector<read_item> batch);
    asio::awaitable<std::optional<error>> apply(commit_report r, transaction steps, committed& done);
    asio::awaitable<void> give_back_unknown(std::vector<read_item> batch);
    std::vector<item_claim_ptr> hand_out(std::vector<read_item> claimed, std::int64_t token);
    void leave_out(const error& why, const std::vector<read_item>& batch);

    static asio::awaitable<void> take_out(std::shared_ptr<claimer> self, item_claim_ptr claim,
                                          awaited_item_ptr consumer);
    void keep_taken(std::string item);
    bool serve_taken(awaited_item& consumer);
    static asio::awaitable<void> carry_over(session on, spec_ptr what, std::deque<std::string> taken);

    bool has_consumers() noexcept;
    std::size_t count_consumers(std::size_t most) const noexcept;
    awaited_item_ptr next_consumer();
    void tell_impatient_ones();
    void fail_all(const std::exception_ptr& why) noexcept;

    const session on_;
    const spec_ptr what_;
    const receipts receipts_;
    const std::string id_;  // the data of claims, as kazoo's consumers write them

    std::deque<awaited_item_ptr> consumers_;  // also some that have left
    std::size_t swept_ = 0;                   // how many there were after the last removal of these
    item_list free_;
    later_items later_;
    due_clock clock_;                                                       // of a layout whose names tell times
    std::map<std::shared_ptr<asio::steady_timer>, item_claim_ptr> pauses_;  // of return_after()
    std::map<std::string, pending_data> ahead_;                             // reads of items that will be claimed next
    std::shared_ptr<asio::steady_timer> next_look_;
    std::shared_ptr<asio::steady_timer> turn_;  // W3
    std::chrono::milliseconds spread_{0};
    std::vector<std::weak_ptr<item_claim>> own_;  // claims that may have ended since the last turn
    std::deque<std::string> taken_;  // items whose take() was cancelled while they were removed: for the next take()
    std::shared_ptr<claimer> self_;  // while there are such items
    batch_limit limit_{most_claims};
    refused_items refused_;
    watch items_watch_, claims_watch_;
    bool serving_ = false, has_warned_ = false;
    bool was_woken_ = false, has_won_ = false, has_collided_ = false;  // since the last turn, of W3
    bool waits_for_room_ = false;                 // W4
    bool later_has_news_ = false;                 // later_.move_due() has something to do
    std::size_t claims_while_alone_ = 1'000'000;  // since another process was noticed; none was yet
    bool was_refused_ = false;  // the last claim: another consumer was ahead, and this session's server may lag
    int late_ = 0;  // how much more often than in time: refused claims, and items that were gone when they were read
    std::minstd_rand dice_;
};

}  // namespace zkasio::queue_detail
