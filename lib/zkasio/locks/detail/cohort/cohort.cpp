#include <zkasio/locks/detail/cohort/cohort.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/cohort/cohort_turn.hpp>

#include <asio/error.hpp>
#include <asio/strand.hpp>

#include <algorithm>
#include <cassert>
#include <typeinfo>
#include <utility>

namespace zkasio::lock_detail {

cohort_spec::cohort_spec(lock_spec_ptr l, const tenure_limits& how_long)
    : lock(std::move(l)),
      limits(how_long),
      key("cohort " + std::to_string(limits.turns) + ' ' + std::to_string(limits.tenure.count()) + ' ' +
          std::to_string(limits.linger.count()) + ' ' + lock->key) {}

std::shared_ptr<cohort> cohort_spec::last() const {
    const auto mine = mutex_.lock();
    return mine ? last_.lock() : nullptr;
}

void cohort_spec::remember(const std::shared_ptr<cohort>& c) const {
    if (const auto mine = mutex_.lock()) last_ = c;
}

cohort::cohort(session on, const cohort_spec& of)
    : on_(on.patient()),
      tools_(on_),
      lock_(of.lock),
      limits_(of.limits),
      observed_(tools_.has_observer()),
      flush_timer_(on_.get_executor()),
      tries_timer_(on_.get_executor()),
      warning_timer_(on_.get_executor()) {}

std::shared_ptr<cohort> cohort::of(const session& on, const cohort_spec_ptr& spec) {
    const auto make = [&] { return std::make_shared<cohort>(on, *spec); };
    const auto found = std::static_pointer_cast<cohort>(toolbox(on).local(spec->key, make));
    spec->remember(found);
    return found;
}

bool cohort::over() const {
    if (on_.over()) return true;
    const locked lock = mutex_.lock();
    return !lock || over_;
}

// ------------------------------------------------------------------------------------------------------ from turns

bool cohort::is_busy() const {
    if (on_.over()) return false;
    const locked lock = mutex_.lock();
    return lock && !over_ && (current_ || first_);
}

cohort_turn_ptr cohort::take_at_once() {
    if (on_.over()) return nullptr;
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock || over_ || current_ || first_ || state_ != place_state::has_lock) return nullptr;
    if (place_->claim()->hold().held_until() <= now || unchecked(now) > on_.renewal_interval()) return nullptr;
    tenure next = now_of_tenure(now);
    next.has_waiters = true;
    if (next_tenure_step(limits_, next) != tenure_step::grant) return nullptr;
    auto t = std::make_shared<cohort_turn>(shared_from_this(), if_contended::wait, now);
    t->since_ = now;
    grant(e, t, now);
    e.granted = nullptr;  // is not suspended
    finish(std::move(lock), e);
    return t;
}

void cohort::enter(const cohort_turn_ptr& t, const asio::any_io_executor& from) {
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock) return cohort_turn::resume(t, failure(errc::forked));
    t->since_ = now;
    t->came_ = std::min(t->came_, now);
    t->queue_length_ = static_cast<std::uint32_t>(waiting_ + (current_ ? 1 : 0));
    const bool excluded = current_ || first_ || state_ == place_state::waiting;
    const bool refused = !over_ && t->when_contended_ == if_contended::give_up && excluded;
    std::error_code why = over_;
    if (!over_ && !refused && waits_for_itself(from)) why = errc::would_deadlock;
    if (why || refused) {
        report_wait(e, *t, now, why, refused);
        finish(std::move(lock), e);
        return cohort_turn::resume(t, why ? failure(why) : nullptr);
    }
    // Bodies run on a strand; place_failed() tells of the turn for which the place is asked.
    const bool in_body = from.target_type() == typeid(asio::strand<asio::any_io_executor>);
    const cohort_place_ptr checks = in_body && state_ == place_state::waiting ? place_ : nullptr;
    insert(t);
    advance(e, now);
    e.warn_later = waiting_ > 0 && !warned_ && !std::exchange(warns_later_, true);
    finish(std::move(lock), e);
    if (checks) checks->refuse_if_own_work(t, from);
}

void cohort::cancel(const cohort_turn_ptr& t) noexcept { stop_waiting(t, asio::error::operation_aborted); }
void cohort::would_deadlock(const cohort_turn_ptr& t) noexcept { stop_waiting(t, errc::would_deadlock); }

void cohort::stop_waiting(const cohort_turn_ptr& t, std::error_code why) noexcept {
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock || !t->waits_) return;
    const cohort_turn_ptr keep = pop(*t);
    report_wait(e, *t, now, why, false);
    advance(e, now);
    finish(std::move(lock), e);
    cohort_turn::resume(t, failure(why));
}

std::exception_ptr cohort::failure(std::error_code why) const {
    return std::make_exception_ptr(
        error(why, "acquire", lock_->directory, why == errc::would_deadlock ? holds_it_already : ""));
}

bool cohort::give_up(cohort_turn& t) noexcept {
    if (t.place_->claim()->hold().reason() == loss_reason::forked) return false;
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock) return false;
    std::erase(with_bodies_, &t);
    // A body may go on after it has released its turn: the place then belongs to other turns.
    const std::unique_ptr<running_bodies> bodies = std::move(t.bodies_);
    if (!t.lost_alone_ && !t.lost_with_place_) report_hold(e, t, now);
    if (current_ == &t) {
        current_ = nullptr;
        idle_since_ = now;
        advance(e, now);
    } else if (t.lost_with_place_) {
        e.left = t.place_;  // G40: the next place of this cohort no longer waits for the bodies of this turn
    }
    const bool left = e.left != nullptr;
    finish(std::move(lock), e);
    if (bodies)
        for (const asio::any_io_executor& executor : bodies->executors()) t.place_->claim()->body_ends(executor);
    return left;
}

void cohort::turn_lost(cohort_turn& t) noexcept {
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock || current_ != &t || t.lost_alone_) return;
    t.lost_alone_ = true;
    report_hold(e, t, now);
    if (!t.bodies_ || !t.bodies_->any()) {
        current_ = nullptr;
        idle_since_ = now;
        advance(e, now);
    }
    finish(std::move(lock), e);
}

bool cohort::body_begins(cohort_turn& t, asio::any_io_executor executor) {
    const locked lock = mutex_.lock();
    if (!lock) return true;
    if (t.given_up_.load()) return false;
    if (!t.bodies_) t.bodies_ = std::make_unique<running_bodies>();
    if (!t.bodies_->any()) with_bodies_.push_back(&t);
    t.bodies_->announce();
    t.bodies_->begin(std::move(executor));
    return true;
}

bool cohort::body_ends(cohort_turn& t, const asio::any_io_executor& executor) noexcept {
    const boot_clock::time_point now = boot_clock::now();
    effects e;
    locked lock = mutex_.lock();
    if (!lock) return true;
    if (!t.bodies_) return false;
    t.bodies_->end(executor);
    if (t.bodies_->any()) return true;
    std::erase(with_bodies_, &t);
    if (current_ != &t || !t.lost_alone_) return true;
    current_ = nullptr;
    idle_since_ = now;
    advance(e, now);
    finish(std::move(lock), e);
    return true;
}

void cohort::asked_back(const cohort_turn& t) noexcept {
    const locked lock = mutex_.lock();
    if (lock && current_ == &t) asked_back_ = true;
}

// Whether the work under a turn asks for another turn: a body of that turn runs on `from`.
bool cohort::waits_for_itself(const asio::any_io_executor& from) const noexcept {
    return std::any_of(with_bodies_.begin(), with_bodies_.end(),
                       [&](const cohort_turn* t) { return t->bodies_->on(from); });
}

// -------------------------------------------------------------------------------------------------------- deciding

tenure cohort::now_of_tenure(boot_clock::time_point now) const noexcept {
    tenure t;
    t.turns = turns_;
    t.age = now - since_;
    t.others = others_;
    t.asked_back = asked_back_;
    t.has_waiters = first_ != nullptr;
    t.first_tries = first_ && first_->when_contended_ == if_contended::give_up;
    t.tried = tried_ || (wanted_ && given_ % 8 == 0);
    return t;
}

// For how long nothing has shown that the place's node is there. A place is granted by such a proof.
boot_clock::duration cohort::unchecked(boot_clock::time_point now) const noexcept {
    return now - std::max(place_->claim()->hold().node_checked(), since_);
}

// An operator may have deleted the node, and the link be silent: then another contender has the lock, and a guard is
// held() until its lease ends. Heartbeats check the node, a renewal interval after each other (while it is watched, any
// write does); when one is overdue by a sixteenth of the timeout, no turn begins.
bool cohort::is_checked(effects& e, boot_clock::time_point now) {
    const boot_clock::duration age = unchecked(now), timeout = on_.timeout(), interval = on_.renewal_interval();
    if (age <= interval) {
        waits_for_check_.reset();
        return true;
    }
    if (now - check_asked_ >= timeout / 16) {
        check_asked_ = now;
        e.checked = place_;
    }
    if (age <= interval + timeout / 16) return true;
    if (!waits_for_check_) waits_for_check_ = now;
    e.woken = place_;
    const boot_clock::duration pause = (now - *waits_for_check_) / 2;  // short at first: the answer may be near
    e.wake_after = std::max<boot_clock::duration>(std::min(pause, timeout / 16), std::chrono::milliseconds(5));
    return false;
}

void cohort::advance(effects& e, boot_clock::time_point now) {
    if (current_ || over_) return;
    if (state_ == place_state::none) {
        if (first_) ask_for_place(e);
        return;
    }
    if (state_ == place_state::waiting) {
        if (first_) return;
        state_ = place_state::none;
        e.withdrawn = std::move(place_);
        return;
    }
    if (const session_hold& hold = place_->claim()->hold(); hold.held_until() <= now) {
        if (hold.reason() != loss_reason::none) return lose_place(e);
        // The lease ends; unless an answer extends it in this very turn of the strand.
        if (!first_) return;
        e.woken = place_;
        e.wake_after = std::chrono::milliseconds(5);
        return;
    }
    switch (next_tenure_step(limits_, now_of_tenure(now))) {
        case tenure_step::grant:
            if (!is_checked(e, now)) return;
            grant(e, pop(*first_), now);
            break;
        case tenure_step::wait_for_look: break;
        case tenure_step::queue_again:
            lose_place(e);
            e.from = {};  // no work of this process holds the lock, and enter() has looked at the bodies of turns
            return;
        case tenure_step::give_back:
            if (others_ == other_contenders::waiting) wanted_ = e.wanted = true;
            return lose_place(e);
        case tenure_step::linger:
            if (!std::exchange(looked_, true)) {
                e.looked = place_;
                e.look_how = lookout::then::watch;
            }
            if (std::exchange(lingers_, true)) break;
            e.woken = place_;
            e.wake_after = linger_left(limits_, now - idle_since_);
            break;
    }
    if (!looked_ && must_look(now_of_tenure(now))) {
        looked_ = true;
        e.looked = place_;
        e.look_how = lookout::then::list;
    }
}

// The cohort queues again if a coroutine waits.
void cohort::lose_place(effects& e) {
    assert(!current_);
    e.left = std::move(place_);
    state_ = place_state::none;
    if (first_) ask_for_place(e);
}

void cohort::ask_for_place(effects& e) {
    state_ = place_state::waiting;
    place_ = std::make_shared<cohort_place>(shared_from_this());
    turns_ = 0;
    others_ = other_contenders::unknown;
    looked_ = lingers_ = asked_back_ = false;
    e.entered = place_;
    e.when_contended = first_->when_contended_;
    asked_for_ = first_;
    e.from = first_->waiter_->on;
}

void cohort::grant(effects& e, cohort_turn_ptr t, boot_clock::time_point now) {
    assert(!current_ && state_ == place_state::has_lock);
    t->place_ = place_;
    t->number_ = turns_++;
    ++given_;
    current_ = t.get();
    report_wait(e, *t, now, {}, false);
    t->since_ = now;
    e.granted = std::move(t);
}

void cohort::finish(locked lock, effects& e) noexcept {
    lock.unlock();
    if (e.granted) cohort_turn::resume(std::move(e.granted), nullptr);
    // The new node is created before the old one is removed: no process comes between, which would be fairness lost.
    if (e.entered) e.entered->enter(e.when_contended, std::move(e.from));
    if (e.left) e.left->leave();
    if (e.withdrawn) e.withdrawn->withdraw();
    if (e.looked) e.looked->look(e.look_how);
    if (e.checked) e.checked->check();
    if (e.wanted) remember_tries();
    if (e.warn_later) warn_later();
    if (e.woken) e.woken->wake_after(e.wake_after);
    if (e.flush != flush_time::none) flush_reports(e.flush);
}

// ---------------------------------------------------------------------------------------------------------- the list

// By the time at which each has come: those that have waited in an earlier session are ahead of those that have not.
void cohort::insert(cohort_turn_ptr t) noexcept {
    cohort_turn* after = last_;
    while (after && after->came_ > t->came_) after = after->previous_;
    cohort_turn_ptr& link = after ? after->next_ : first_;
    cohort_turn* const raw = t.get();
    raw->waits_ = true;
    raw->previous_ = after;
    raw->next_ = std::move(link);
    (raw->next_ ? raw->next_->previous_ : last_) = raw;
    link = std::move(t);
    ++waiting_;
}

cohort_turn_ptr cohort::pop(cohort_turn& t) noexcept {
    cohort_turn_ptr& link = t.previous_ ? t.previous_->next_ : first_;
    cohort_turn_ptr popped = std::move(link);
    link = std::move(t.next_);
    (link ? link->previous_ : last_) = t.previous_;
    t.previous_ = nullptr;
    t.waits_ = false;
    --waiting_;
    return popped;
}

cohort_turn_ptr cohort::take_all_waiting() noexcept {
    for (cohort_turn* t = first_.get(); t; t = t->next_.get()) {
        t->waits_ = false;
        t->previous_ = nullptr;
    }
    last_ = nullptr;
    waiting_ = 0;
    return std::exchange(first_, nullptr);
}

}  // namespace zkasio::lock_detail
