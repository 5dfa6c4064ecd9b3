#include <zkasio/locks/detail/cohort/cohort_turn.hpp>

#include <zkasio/locks/detail/cohort/cohort.hpp>
#include <zkasio/locks/detail/when_lost.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>

#include <functional>
#include <utility>

namespace zkasio::lock_detail {

cohort_turn::~cohort_turn() {
    if (place_) give_up();
    delete used_.load(std::memory_order_acquire);
}

// ------------------------------------------------------------------------------------------------------------ waiting

asio::awaitable<void> cohort_turn::decided(std::shared_ptr<cohort_turn> self) {
    // Not a coroutine: a coroutine would need one more frame for each waiter.
    return asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr)>(
        [self = std::move(self)](auto h) {
            auto on = asio::get_associated_executor(h);
            if (auto slot = asio::get_associated_cancellation_slot(h); slot.is_connected())
                slot.assign([self](asio::cancellation_type) { self->of_->cancel(self); });
            self->suspended(std::move(h), std::move(on));
        },
        asio::use_awaitable);
}

void cohort_turn::suspended(handler h, asio::any_io_executor on) {
    waiter_.emplace(waiter{std::move(h), asio::prefer(on, asio::execution::outstanding_work.tracked)});
    const auto of = of_;
    of->enter(shared_from_this(), on);
}

void cohort_turn::resume(std::exception_ptr failed) noexcept {
    waiter w = std::move(*waiter_);
    waiter_.reset();
    asio::post(w.on, [h = std::move(w.resume), failed = std::move(failed)]() mutable { std::move(h)(failed); });
}

// ---------------------------------------------------------------------------------------------------- a granted turn

boot_clock::time_point cohort_turn::held_until() const noexcept {
    return reason() == loss_reason::none ? place_->claim()->hold().held_until() : boot_clock::time_point();
}

loss_reason cohort_turn::reason() const noexcept {
    if (const used* const u = used_.load(std::memory_order_acquire)) return u->hold.reason();
    return given_up_.load(std::memory_order_acquire) ? loss_reason::released : place_->claim()->hold().reason();
}

// Most turns are short, and nothing but held() and token() is asked of them: these have no hold of their own.
const session_hold& cohort_turn::hold() const noexcept {
    if (const used* const u = used_.load(std::memory_order_acquire)) return u->hold;
    try {
        const session_hold& of_place = place_->claim()->hold();
        auto mine = std::make_unique<used>();
        mine->hold = on().hold_all({std::cref(of_place)});
        used* other = nullptr;
        if (!used_.compare_exchange_strong(other, mine.get(), std::memory_order_acq_rel)) return other->hold;
        const used* const u = mine.release();
        if (given_up_.load()) u->hold.end();
        const auto self = std::const_pointer_cast<cohort_turn>(shared_from_this());
        const std::shared_ptr<const session_hold> shared(self, &u->hold);
        when_lost(on(), shared, [weak = std::weak_ptr<cohort_turn>(self)](loss_reason) {
            if (const auto turn = weak.lock()) turn->of_->turn_lost(*turn);
        });
        return u->hold;
    } catch (...) {
        // Out of memory: without a hold of its own, the turn counts as released.
        static const session_hold none;
        return none;
    }
}

void cohort_turn::body_begins(asio::any_io_executor executor) {
    of_->body_begins(*this, executor);
    place_->claim()->body_begins(std::move(executor));
}

void cohort_turn::body_ends(asio::any_io_executor executor) noexcept {
    place_->claim()->body_ends(executor);
    of_->body_ends(*this, executor);
}

void cohort_turn::asked_back() noexcept { of_->asked_back(*this); }

void cohort_turn::give_up() noexcept {
    if (given_up_.exchange(true)) return;
    if (const used* const u = used_.load()) u->hold.end();
    left_ = of_->give_up(*this);
}

asio::awaitable<void> cohort_turn::gone() {
    if (!left_) co_return;
    const std::shared_ptr<queue_claim> claim = left_->claim();
    co_await claim->gone();
}

}  // namespace zkasio::lock_detail
