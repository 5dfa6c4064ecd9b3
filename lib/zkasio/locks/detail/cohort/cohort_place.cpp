#include <zkasio/locks/detail/cohort/cohort_place.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/cohort/cohort.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace zkasio::lock_detail {

lookout::lookout(session on, lock_spec_ptr lock, std::shared_ptr<lock_claim> claim, std::weak_ptr<cohort_place> place)
    : on_(on.patient()),
      lock_(std::move(lock)),
      claim_(std::move(claim)),
      own_name_(node_name(claim_->paths().front())),
      place_(std::move(place)),
      pauses_(toolbox(on_).make_back_off()),
      timer_(on_.get_executor()),
      kept_timer_(on_.get_executor()) {}

void lookout::begin() {
    kept_timer_.expires_after(on_.timeout() / 4);
    kept_timer_.async_wait([weak = weak_from_this()](std::error_code cancelled) {
        const auto self = weak.lock();
        if (!self || self->over_ || cancelled) return;
        try {
            self->requests_.emplace(self->claim_);
        } catch (...) {
            // Nothing may leave a handler. A request to give the lock back is noticed when a holder looks.
        }
    });
}

void lookout::look(then how) {
    if (over_ || looking_ || watch_) return;
    looking_ = true;
    try {
        how == then::list ? list() : watch_children();
    } catch (...) {
        failed();
    }
}

void lookout::list() {
    const pending_children asked = toolbox(on_).start_children(lock_->directory);
    asked.then([weak = weak_from_this(), asked] {
        const auto self = weak.lock();
        if (!self || self->over_) return;
        try {
            self->seen(asked.get().names);
        } catch (...) {
            self->failed();
        }
    });
}

void lookout::watch_children() {
    request_ = std::make_shared<pending_watched_children>(toolbox(on_).start_children_and_watch(lock_->directory));
    request_->then([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || self->over_) return;
        const auto asked = std::exchange(self->request_, nullptr);
        try {
            watched<node_children> found = asked->get();
            self->watch_.emplace(std::move(found.changes));
            self->seen(found.value.names);
        } catch (...) {
            self->failed();
        }
    });
}

void lookout::seen(const std::vector<std::string>& names) {
    looking_ = false;
    pauses_.reset();
    const auto place = place_.lock();
    if (!place) return stop();
    // The node was there before the listing was asked for (as G4). Its own watch may be set later than this one.
    if (std::find(names.begin(), names.end(), own_name_) == names.end()) return place->deleted();
    bool others = false;
    std::vector<std::string> foreign;
    for (const std::string& name : names) {
        if (!lock_->names.may_contend(name))
            foreign.push_back(name);
        else if (name != own_name_)
            others = true;
    }
    std::sort(foreign.begin(), foreign.end());
    const bool is_of_foreign = foreign != std::exchange(foreign_, foreign);
    if (others) {
        watch_.reset();
        fired_ = false;
        return place->others_are(other_contenders::waiting);
    }
    if (!watch_) return look(then::watch);
    // Told in this order: a watch that has fired already calls at once.
    place->others_are(other_contenders::none);
    if (std::exchange(fired_, false) && !is_of_foreign && !over_) place->tried();
    if (over_ || !watch_) return;
    watch_->then([weak = weak_from_this()](std::error_code ended, node_change) {
        const auto self = weak.lock();
        if (!self || self->over_ || ended) return;
        self->watch_.reset();
        self->fired_ = true;
        if (const auto of = self->place_.lock()) of->others_are(other_contenders::unknown);
        self->look(then::watch);
    });
}

// In a catch block. A directory that is gone took the place's node along, which the hold tells. What else cannot be
// repeated is a refusal: without a look, the cohort behaves as if another contender always waited.
void lookout::failed() noexcept {
    looking_ = false;
    try {
        throw;
    } catch (const error& e) {
        if (e.code() == condition::retryable) return look_later();
        if (e.code() == condition::session_ended || e.code() == condition::cancelled) return;
    }
    if (const auto place = place_.lock()) place->others_are(other_contenders::waiting);
}

void lookout::look_later() {
    looking_ = true;
    pauses_.then(on_.get_executor(), [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || self->over_) return;
        self->looking_ = false;
        self->look(then::watch);
    });
}

void lookout::wake_after(boot_clock::duration time) {
    if (over_) return;
    timer_.expires_after(std::min<boot_clock::duration>(time, std::chrono::hours(1)));
    timer_.async_wait([weak = weak_from_this()](std::error_code cancelled) {
        const auto self = weak.lock();
        if (!self || self->over_ || cancelled) return;
        if (const auto place = self->place_.lock()) place->lingered();
    });
}

void lookout::stop() noexcept {
    over_ = true;
    request_.reset();
    watch_.reset();
    requests_.reset();
    try {
        timer_.cancel();
        kept_timer_.cancel();
    } catch (...) {
    }
}

template <class F>
void cohort_place::on_strand(F f) noexcept {
    asio::dispatch(of_->on().get_executor(), [self = shared_from_this(), f] { f(*self); });
}

// On the strand, so that the claim is there when the contender is decided.
void cohort_place::enter(if_contended when_contended, asio::any_io_executor from) noexcept {
    on_strand([when_contended, from = std::move(from)](cohort_place& self) {
        try {
            acquire_request what(self.of_->lock(), lock_kind::exclusive, when_contended);
            what.reported_by_user = true;
            what.user = self.weak_from_this();
            self.claim_ = std::make_shared<queue_claim>(self.of_->on(), std::move(what), from);
        } catch (...) {
            self.of_->place_failed(self.shared_from_this(), std::current_exception());
        }
    });
}

void cohort_place::withdraw() noexcept {
    on_strand([](cohort_place& self) {
        if (self.claim_) self.claim_->give_up();
    });
    stop_looking();
}

void cohort_place::leave() noexcept {
    claim_->give_up();
    stop_looking();
}

void cohort_place::stop_looking() noexcept {
    on_strand([](cohort_place& self) {
        if (const auto out = std::exchange(self.lookout_, nullptr)) out->stop();
    });
}

void cohort_place::look(lookout::then how) noexcept {
    on_strand([how](cohort_place& self) {
        const auto out = self.lookout_;
        if (!out) return;
        if (how == lookout::then::watch) self.lingered();
        out->look(how);
        // The place is kept for more than one turn. If an operator deletes its node, no further turns are given as soon
        // as this watch tells; without it, a heartbeat would tell.
        if (!self.claim_->hold().nodes_watched()) self.claim_->hold().watch_nodes();
    });
}

void cohort_place::wake_after(boot_clock::duration time) noexcept {
    on_strand([time](cohort_place& self) {
        if (const auto out = self.lookout_) out->wake_after(time);
    });
}

void cohort_place::check() noexcept {
    on_strand([](cohort_place& self) { self.claim_->hold().check_node(); });
}

void cohort_place::refuse_if_own_work(const std::shared_ptr<cohort_turn>& waits, asio::any_io_executor from) noexcept {
    on_strand([waits, from = std::move(from)](cohort_place& self) {
        const auto queue = lock_queue::of(self.of_->on(), self.of_->lock());
        if (queue->waits_for_itself(lock_kind::exclusive, from)) self.of_->would_deadlock(waits);
    });
}

void cohort_place::decided() noexcept {
    try {
        if (!claim_->granted()) return of_->place_refused(shared_from_this());
        if (claim_->hold().held()) return granted();
        toolbox(of_->on()).run_in_background(wait_for_lease(shared_from_this()));
    } catch (...) {
        of_->place_failed(shared_from_this(), std::current_exception());
    }
}

asio::awaitable<void> cohort_place::wait_for_lease(std::shared_ptr<cohort_place> self) {
    try {
        const bool covered = co_await wait_until_covered(self->claim_);
        covered ? self->granted() : self->of_->place_lost(self);
    } catch (...) {
        self->of_->place_failed(self, std::current_exception());
    }
}

void cohort_place::granted() {
    lookout_ = std::make_shared<lookout>(of_->on(), of_->lock(), claim_, weak_from_this());
    lookout_->begin();
    // In a turn of its own: the code that finds the loss may be at work on the queue.
    claim_->hold().on_lost([weak = weak_from_this(), strand = of_->on().get_executor()](loss_reason) {
        asio::post(strand, [weak] {
            if (const auto self = weak.lock()) self->of_->place_lost(self);
        });
    });
    of_->place_granted(shared_from_this());
}

void cohort_place::asked_back() noexcept { of_->place_asked_back(shared_from_this()); }
void cohort_place::tried() noexcept { of_->tried(shared_from_this()); }
std::optional<boot_clock::time_point> cohort_place::idle_guard_since() const noexcept {
    return of_->idle_guard_since(*this);
}
void cohort_place::others_are(other_contenders now) { of_->others_are(shared_from_this(), now); }
void cohort_place::lingered() { of_->lingered(shared_from_this()); }
void cohort_place::deleted() { claim_->hold().lose(loss_reason::node_deleted, claim_->paths().front()); }

}  // namespace zkasio::lock_detail
