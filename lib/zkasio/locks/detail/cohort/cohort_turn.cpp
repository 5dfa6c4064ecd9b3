#include <zkasio/locks/detail/cohort/cohort_turn.hpp>

#include <zkasio/locks/detail/cohort/cohort.hpp>
#include <zkasio/locks/detail/when_lost.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>

#include <functional>
#include <utility>

namespace zkasio::lock_detail {

cohort_turn::~cohort_turn() {
    if (place_) give_up();
    delete hold_.load(std::memory_order_acquire);
}

// ------------------------------------------------------------------------------------------------------------ waiting

// Not a coroutine: all that waits is one frame, of Asio's, and the turn.
asio::awaitable<lock_guard> cohort_turn::next(std::shared_ptr<cohort> of, if_contended when_contended,
                                              std::shared_ptr<const void> open, boot_clock::time_point came) {
    return asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr, lock_guard)>(
        [of = std::move(of), when_contended, open = std::move(open), came](handler h) mutable {
            const asio::any_io_executor on = asio::get_associated_executor(h);
            cohort& c = *of;
            const auto turn = std::make_shared<cohort_turn>(std::move(of), when_contended, came);
            if (auto slot = asio::get_associated_cancellation_slot(h); slot.is_connected())
                slot.assign([weak = std::weak_ptr<cohort_turn>(turn)](asio::cancellation_type) {
                    if (const auto waits = weak.lock()) waits->of_->cancel(waits);
                });
            turn->waiter_.emplace(
                waiter{std::move(h), asio::prefer(on, asio::execution::outstanding_work.tracked), std::move(open)});
            c.enter(turn, on);
        },
        asio::use_awaitable);
}

void cohort_turn::resume(std::shared_ptr<cohort_turn> self, std::exception_ptr failed) noexcept {
    waiter w = std::move(*self->waiter_);
    self->waiter_.reset();
    asio::post(w.on, [h = std::move(w.resume), open = std::move(w.open), to = delivery(std::move(self)),
                      failed = std::move(failed)]() mutable {
        lock_guard guard;
        if (to.turn->place_) guard = lock_guard(std::move(to.turn), std::move(open));
        std::move(h)(std::move(failed), std::move(guard));
    });
}

// Not inline: the executor that drops one handler may drop that of the next turn, and so on.
cohort_turn::delivery::~delivery() {
    if (!turn || !turn->place_) return;
    asio::post(turn->of_->on().get_executor(), [dropped = turn] { dropped->give_up(); });
}

// ---------------------------------------------------------------------------------------------------- a granted turn

boot_clock::time_point cohort_turn::held_until() const noexcept {
    return reason() == loss_reason::none ? place_->claim()->hold().held_until() : boot_clock::time_point();
}

loss_reason cohort_turn::reason() const noexcept {
    if (const session_hold* const mine = hold_.load(std::memory_order_acquire)) return mine->reason();
    return given_up_.load(std::memory_order_acquire) ? loss_reason::released : place_->claim()->hold().reason();
}

// Most turns are short, and nothing but held() and token() is asked of them: these have no hold of their own.
const session_hold& cohort_turn::hold() const noexcept {
    if (const session_hold* const mine = hold_.load(std::memory_order_acquire)) return *mine;
    auto made = std::make_unique<session_hold>(on().hold_all({std::cref(place_->claim()->hold())}));
    session_hold* mine = nullptr;
    if (!hold_.compare_exchange_strong(mine, made.get())) return *mine;
    mine = made.release();
    if (given_up_.load()) mine->end();
    const auto self = std::const_pointer_cast<cohort_turn>(shared_from_this());
    when_lost(on(), std::shared_ptr<const session_hold>(self, mine),
              [weak = std::weak_ptr<cohort_turn>(self)](loss_reason) {
                  if (const auto turn = weak.lock()) turn->of_->turn_lost(*turn);
              });
    return *mine;
}

void cohort_turn::body_begins(asio::any_io_executor executor) {
    place_->claim()->body_begins(executor);
    bool counts = false;
    try {
        counts = of_->body_begins(*this, executor);
    } catch (...) {
        place_->claim()->body_ends(executor);
        throw;
    }
    if (!counts) place_->claim()->body_ends(executor);
}

void cohort_turn::body_ends(asio::any_io_executor executor) noexcept {
    if (of_->body_ends(*this, executor)) place_->claim()->body_ends(executor);
}

void cohort_turn::asked_back() noexcept { of_->asked_back(*this); }

void cohort_turn::give_up() noexcept {
    if (given_up_.exchange(true)) return;
    if (const session_hold* const mine = hold_.load()) mine->end();
    gave_place_up_ = of_->give_up(*this);
}

asio::awaitable<void> cohort_turn::gone() {
    if (!gave_place_up_) co_return;
    const std::shared_ptr<queue_claim> claim = place_->claim();
    co_await claim->gone();
}

}  // namespace zkasio::lock_detail
