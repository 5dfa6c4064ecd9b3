#pragma once

#include <zkasio/queues/detail/item_claim.hpp>
#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/recipe/rethrow_to_caller.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace zkasio::queue_detail {

/// What a consumer does while no item is free.
enum class when_empty {
    wait,
    give_up,
};

/// One consumer that wants an item: made by the consumer's coroutine, and served by a claimer.
class awaited_item {
public:
    awaited_item(when_empty how, one_shot_event done) : how_(how), done_(std::move(done)) {}

    bool waits_for_items() const noexcept { return how_ == when_empty::wait; }
    const one_shot_event& done() const noexcept { return done_; }

    /// Exactly one of the two succeeds: the claimer serves the consumer, or the consumer leaves.
    bool serve() noexcept { return leave_waiting(state::served); }
    bool withdraw() noexcept { return leave_waiting(state::withdrawn); }
    bool is_waiting() const noexcept { return state_ == state::waiting; }

    /// The outcome, told once, after serve(). @param claim null: no item is free.
    void succeed(item_claim_ptr claim) noexcept {
        claim_ = std::move(claim);
        done_.fire();
    }
    void fail(std::exception_ptr why) noexcept {
        failed_ = std::move(why);
        done_.fire();
    }
    /// To be called once, after done(). Throws if the claimer has failed.
    item_claim_ptr take_claim(const std::string& operation, const std::string& path) {
        if (failed_) rethrow_to_caller(failed_, operation, path);
        return std::move(claim_);
    }

private:
    enum class state {
        waiting,
        served,
        withdrawn,
    };
    bool leave_waiting(state next) noexcept {
        state now = state::waiting;
        return state_.compare_exchange_strong(now, next);
    }

    const when_empty how_;
    const one_shot_event done_;
    std::atomic<state> state_{state::waiting};
    item_claim_ptr claim_;  // written before `done_` is fired, as `failed_`; dropped, it gives the item back
    std::exception_ptr failed_;
};
using awaited_item_ptr = std::shared_ptr<awaited_item>;

}  // namespace zkasio::queue_detail
