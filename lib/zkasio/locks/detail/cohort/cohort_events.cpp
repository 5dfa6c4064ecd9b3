// The part of cohort that hears of its place, of other contenders, and of the session's end, and that reports turns as
// acquires and holds, for client_observer and client::stats().
#include <zkasio/locks/detail/cohort/cohort.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/cohort/cohort_turn.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/recipe/errors.hpp>

#include <asio/dispatch.hpp>

#include <chrono>
#include <optional>
#include <utility>

namespace zkasio::lock_detail {
namespace {

// An exception of its own for each caller.
std::exception_ptr failure_of_acquire(const std::exception_ptr& why, const std::string& path) noexcept {
    try {
        rethrow_to_caller(why, "acquire", path);
    } catch (...) {
        return std::current_exception();
    }
}

}  // namespace

// --------------------------------------------------------------------------------------------------- from the place

void cohort::place_granted(const cohort_place_ptr& place) {
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock || place_ != place || state_ != place_state::waiting) return;
    state_ = place_state::has_lock;
    since_ = idle_since_ = now;
    if (place->claim()->came_from() == hand_over::remote) others_ = other_contenders::expected;
    advance(e, now);
    finish(std::move(lock), e);
}

void cohort::place_refused(const cohort_place_ptr& place) noexcept {
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    cohort_turn_ptr refused;  // a list
    locked lock = mutex_.lock();
    if (!lock || place_ != place) return;
    place_.reset();
    state_ = place_state::none;
    for (cohort_turn* t = first_.get(); t;) {
        cohort_turn* const next = t->next_.get();
        if (t->when_contended_ == if_contended::give_up) {
            cohort_turn_ptr popped = pop(*t);
            report_wait(e, *popped, now, {}, true);
            popped->next_ = std::move(refused);
            refused = std::move(popped);
        }
        t = next;
    }
    advance(e, boot_clock::now());
    finish(std::move(lock), e);
    while (refused) {
        cohort_turn_ptr next = std::move(refused->next_);
        cohort_turn::resume(std::move(refused), nullptr);
        refused = std::move(next);
    }
}

void cohort::place_failed(const cohort_place_ptr& place, const std::exception_ptr& why) noexcept {
    bool only_asked = false;
    try {
        std::rethrow_exception(why);
    } catch (const std::system_error& failed) {
        // The lock is held by the work for which the place was asked. Others may wait.
        only_asked = failed.code() == errc::would_deadlock;
    } catch (...) {
    }
    effects e;
    locked lock = mutex_.lock();
    if (!lock || place_ != place) return;
    place_.reset();
    state_ = place_state::none;
    if (!only_asked) return fail_waiting(std::move(lock), why);
    const cohort_turn_ptr asked = asked_for_.lock(), failed = asked && asked->waits_ ? pop(*asked) : nullptr;
    if (failed) report_wait(e, *failed, boot_clock::now(), errc::would_deadlock, false);
    advance(e, boot_clock::now());
    finish(std::move(lock), e);
    if (failed) cohort_turn::resume(failed, failure_of_acquire(why, lock_->directory));
}

void cohort::place_lost(const cohort_place_ptr& place) noexcept {
    effects e;
    locked lock = mutex_.lock();
    if (!lock || place_ != place) return;
    const boot_clock::time_point now = boot_clock::now();
    place_.reset();
    state_ = place_state::none;
    if (current_)
        turn_lost_with_place(e, now);
    else
        e.left = place;
    advance(e, now);
    finish(std::move(lock), e);
    place->stop_looking();
}

void cohort::turn_lost_with_place(effects& e, boot_clock::time_point now) noexcept {
    cohort_turn& t = *std::exchange(current_, nullptr);
    t.lost_with_place_ = true;
    if (!t.lost_alone_) report_hold(e, t, now);
}

void cohort::others_are(const cohort_place_ptr& place, other_contenders now) noexcept {
    effects e;
    locked lock = mutex_.lock();
    if (!lock || place_ != place) return;
    others_ = now;
    advance(e, boot_clock::now());
    finish(std::move(lock), e);
}

void cohort::place_asked_back(const cohort_place_ptr& place) noexcept {
    effects e;
    locked lock = mutex_.lock();
    if (!lock || place_ != place || state_ != place_state::has_lock) return;
    asked_back_ = true;
    advance(e, boot_clock::now());
    finish(std::move(lock), e);
}

void cohort::tried(const cohort_place_ptr& place) noexcept {
    effects e;
    locked lock = mutex_.lock();
    if (!lock || place_ != place) return;
    tried_ = e.wanted = true;
    advance(e, boot_clock::now());
    finish(std::move(lock), e);
}

// T6. The timer keeps the cohort, which a program may make anew for each turn.
void cohort::remember_tries() noexcept {
    asio::dispatch(on_.get_executor(), [self = shared_from_this()] {
        if (self->over()) return;
        self->tries_timer_.expires_after(std::chrono::minutes(1));
        self->tries_timer_.async_wait([self](std::error_code again) {
            const locked lock = self->mutex_.lock();
            if (lock && !again) self->tried_ = self->wanted_ = false;
        });
    });
}

// A coroutine that waits may have the turn itself.
void cohort::warn_later() noexcept {
    asio::dispatch(on_.get_executor(), [self = shared_from_this()] {
        if (self->over()) return;
        self->warning_timer_.expires_after(long_wait);
        self->warning_timer_.async_wait([weak = self->weak_from_this()](std::error_code cancelled) {
            const auto waits = cancelled ? nullptr : weak.lock();
            if (waits) waits->warn();
        });
    });
}

// Under the mutex.
bool cohort::has_idle_guard() const noexcept {
    return current_ && !(current_->bodies_ && current_->bodies_->any());
}

std::optional<boot_clock::time_point> cohort::idle_guard_since(const cohort_place& place) const noexcept {
    const locked lock = mutex_.lock();
    if (!lock || place_.get() != &place || !has_idle_guard()) return std::nullopt;
    return current_->since_;
}

void cohort::warn() {
    const boot_clock::time_point now = boot_clock::now();
    std::string node;
    bool again = false;
    {
        const locked lock = mutex_.lock();
        if (!lock) return;
        warned_ = first_ && has_idle_guard() && now - current_->since_ >= long_wait &&
                  now - first_->since_ >= long_wait;
        if (warned_) node = current_->paths().front();
        again = warns_later_ = !warned_ && waiting_ > 0;
    }
    if (!node.empty()) warn_of_guard(on_, lock_->directory, node);
    if (again) warn_later();
}

void cohort::lingered(const cohort_place_ptr& place) noexcept {
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock || place_ != place || state_ != place_state::has_lock) return;
    if (current_ || first_) {
        lingers_ = false;  // until the place is idle again
        advance(e, now);
        return finish(std::move(lock), e);
    }
    const boot_clock::duration left = linger_left(limits_, now - idle_since_);
    // Places that nobody needs leave half of the budget of nodes to others.
    const std::size_t bytes = place->claim()->paths().front().size();
    if (left > boot_clock::duration::zero() && toolbox(on_).room_for_claims(lock_->directory, bytes) > 0) {
        e.woken = place;
        e.wake_after = std::min<boot_clock::duration>(left, std::chrono::seconds(1));
    } else {
        e.left = std::move(place_);
        state_ = place_state::none;
    }
    finish(std::move(lock), e);
}

// ------------------------------------------------------------------------------------------------------ session's end

void cohort::session_over(std::error_code why) noexcept {
    effects e;
    locked lock = mutex_.lock();
    if (!lock) return;
    over_ = why;
    const cohort_place_ptr place = std::exchange(place_, nullptr);
    state_ = place_state::none;
    if (current_) turn_lost_with_place(e, boot_clock::now());
    fail_waiting(std::move(lock), std::make_exception_ptr(error(why, "acquire", lock_->directory)));
    if (place) place->stop_looking();
    try {
        warning_timer_.cancel();
        tries_timer_.cancel();
    } catch (...) {
    }
    flush_reports(flush_time::now);
}

// An idle place would stay as a node for which nobody in the next process knows.
bool cohort::waits() noexcept {
    effects e;
    locked lock = mutex_.lock();
    if (!lock || over_) return false;
    const bool is_idle = place_ && !current_ && !first_;
    if (!is_idle) return first_ != nullptr;
    if (state_ == place_state::has_lock) lose_place(e);
    finish(std::move(lock), e);
    return true;
}

// The waiting coroutines and their turns keep each other alive.
void cohort::loop_over() noexcept {
    locked lock = mutex_.lock();
    if (!lock) return;
    const cohort_place_ptr place = std::exchange(place_, nullptr);
    current_ = nullptr;
    state_ = place_state::none;
    cohort_turn_ptr t = take_all_waiting();
    lock.unlock();
    while (t) {
        const auto gone = std::exchange(t->waiter_, std::nullopt);
        const cohort_turn_ptr next = std::move(t->next_);
        t = next;
    }
}

void cohort::fail_waiting(locked lock, std::exception_ptr why) noexcept {
    effects e;
    std::error_code code;
    try {
        std::rethrow_exception(why);
    } catch (const std::system_error& failed) {
        code = failed.code();
    } catch (...) {
        code = std::make_error_code(std::errc::not_enough_memory);
    }
    cohort_turn_ptr t = take_all_waiting();
    const boot_clock::time_point now = boot_clock::now();
    for (const cohort_turn* w = t.get(); w; w = w->next_.get()) report_wait(e, *w, now, code, false);
    finish(std::move(lock), e);
    while (t) {
        cohort_turn_ptr next = std::move(t->next_);
        cohort_turn::resume(std::move(t), failure_of_acquire(why, lock_->directory));
        t = std::move(next);
    }
}

namespace {

// Reports are counted on the client's strand. Each detour there costs as much as a turn: so the reports of this time
// share one. (An observer is told at once.)
constexpr std::chrono::milliseconds reports_wait{1};
constexpr std::size_t most_reports = 4096;

}  // namespace

void cohort::report_wait(effects& e, const cohort_turn& t, boot_clock::time_point now, std::error_code failed,
                         bool refused) noexcept {
    lock_wait_report r;
    r.kind = lock_kind::exclusive;
    r.code = failed;
    r.refused = refused;
    if (t.place_) {
        r.token = t.place_->claim()->token();
        r.from = t.number_ == 0        ? t.place_->claim()->came_from()
                 : t.queue_length_ > 0 ? hand_over::local
                                       : hand_over::none;
    }
    r.queue_length = t.queue_length_;
    r.asked = t.since_;
    r.ended = now;
    if (observed_) r.path = lock_->directory;
    reports_.emplace_back(std::move(r));
    must_flush(e);
}

void cohort::report_hold(effects& e, const cohort_turn& t, boot_clock::time_point now) noexcept {
    lock_hold_report r;
    r.kind = lock_kind::exclusive;
    r.token = t.place_->claim()->token();
    if (t.lost_with_place_)
        r.lost = t.place_->claim()->hold().reason();
    else if (t.lost_alone_)
        r.lost = t.reason();
    r.granted = t.since_;
    r.ended = now;
    if (observed_) r.path = lock_->directory;
    reports_.emplace_back(std::move(r));
    must_flush(e);
}

void cohort::must_flush(effects& e) noexcept {
    if (reports_.size() == 1 || reports_.size() == most_reports)
        e.flush = observed_ || reports_.size() > 1 ? flush_time::now : flush_time::soon;
}

void cohort::flush_reports(flush_time when) noexcept {
    asio::dispatch(on_.get_executor(), [self = shared_from_this(), when] {
        if (when == flush_time::now) return self->tell_reports();
        self->flush_timer_.expires_after(reports_wait);
        self->flush_timer_.async_wait([self](std::error_code) { self->tell_reports(); });
    });
}

void cohort::tell_reports() noexcept {
    std::vector<std::variant<lock_wait_report, lock_hold_report>> all;
    {
        const locked lock = mutex_.lock();
        if (!lock) return;
        all.swap(reports_);
    }
    for (const auto& one : all) std::visit([&](const auto& r) { tools_.report(r); }, one);
}

}  // namespace zkasio::lock_detail
