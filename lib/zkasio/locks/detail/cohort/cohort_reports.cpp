// The part of cohort that reports turns as acquires and holds, for client_observer and client::stats().

#include <zkasio/locks/detail/cohort/cohort.hpp>
#include <zkasio/locks/detail/cohort/cohort_turn.hpp>

#include <asio/dispatch.hpp>

#include <chrono>
#include <utility>

namespace zkasio::lock_detail {
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
