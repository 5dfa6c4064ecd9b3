#include <zkasio/locks/detail/cohort/lookout.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/cohort/cohort_place.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
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
    const bool others = std::any_of(names.begin(), names.end(), [&](const auto& name) { return name != own_name_; });
    if (others) {
        watch_.reset();
        fired_ = false;
        return place->others_are(other_contenders::waiting);
    }
    if (!watch_) return look(then::watch);
    // Told in this order: a watch that has fired already calls at once.
    place->others_are(other_contenders::none);
    if (std::exchange(fired_, false) && !over_) place->tried();
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

}  // namespace zkasio::lock_detail
