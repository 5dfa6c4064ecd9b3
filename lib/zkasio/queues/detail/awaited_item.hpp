#pragma once

#include <zkasio/queues/detail/item_claim.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/one_shot_event.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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

}  // namespace zkasio::queue_detail
