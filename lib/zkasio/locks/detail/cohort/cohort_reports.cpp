// The part of cohort that reports turns as acquires and holds, for client_observer and client::stats().

#include <zkasio/locks/detail/cohort/cohort.hpp>
#include <zkasio/locks/detail/cohort/cohort_turn.hpp>

#include <asio/dispatch.hpp>

#include <utility>

namespace zkasio::lock_detail {
namespace {

// Reports are counted on the client's strand. Each detour there costs as much as a turn: so many reports share one.
constexpr std::size_t reports_at_once = 64;

}  // namespace

void cohort::report_wait(effects& e, const cohort_turn& t, boot_clock::time_point now, std::error_code failed,
                         bool refused) noexcept {
    try {
        lock_wait_report r;
        r.kind = lock_kind::exclusive;
        r.code = failed;
        r.refused = refused;
        if (t.place_) {
            r.token = t.place_->claim()->token();
            r.from = t.number_ == 0 ? t.place_->claim()->came_from()
                     : t.queue_length_ > 0 ? hand_over::local : hand_over::none;
        }
        r.queue_length = t.queue_length_;
        r.asked = t.since_;
        r.ended = now;
        if (observed_) r.path = lock_->directory;
        reports_.emplace_back(std::move(r));
        must_flush(e);
    } catch (...) {
        // Out of memory: the report is lost.
    }
}

void cohort::report_hold(effects& e, const cohort_turn& t, boot_clock::time_point now) noexcept {
    try {
        lock_hold_report r;
        r.kind = lock_kind::exclusive;
        r.token = t.place_->claim()->token();
        if (t.lost_alone_ || t.lost_with_place_) r.lost = t.reason();
        r.granted = t.since_;
        r.ended = now;
        if (observed_) r.path = lock_->directory;
        reports_.emplace_back(std::move(r));
        must_flush(e);
    } catch (...) {
        // Out of memory: as above.
    }
}

void cohort::must_flush(effects& e) noexcept {
    const bool is_idle = !current_ && !first_;
    if (flushing_ || (!observed_ && !is_idle && reports_.size() < reports_at_once)) return;
    flushing_ = e.flush = true;
}

void cohort::flush_reports() noexcept {
    try {
        asio::dispatch(on_.get_executor(), [self = shared_from_this()] {
            std::vector<std::variant<lock_wait_report, lock_hold_report>> all;
            {
                const std::lock_guard lock(self->mutex_);
                all.swap(self->reports_);
                self->flushing_ = false;
            }
            for (const auto& one : all) std::visit([&](const auto& r) { self->tools_.report(r); }, one);
        });
    } catch (...) {
        // Out of memory: a later report brings them along.
    }
}

}  // namespace zkasio::lock_detail
