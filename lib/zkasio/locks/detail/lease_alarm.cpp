#include <zkasio/locks/detail/lease_alarm.hpp>

#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/structure_reports.hpp>

#include <asio/dispatch.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace zkasio::lock_detail {

// The timer lives on the strand.
struct lease_alarm::state : std::enable_shared_from_this<state> {
    state(std::shared_ptr<lock_claim> c, std::chrono::nanoseconds m)
        : claim(std::move(c)),
          margin(m),
          stop(toolbox(claim->on()).make_one_shot_event()),
          timer(claim->on().get_executor()) {}

    // A loss of the lock stops the body by itself. The lease may be renewed meanwhile, or, by a reconnect to a server
    // that grants a shorter session timeout, end earlier: so its end is looked up at short intervals.
    void look() {
        if (over || claim->reason() != loss_reason::none) return;
        const boot_clock::time_point now = boot_clock::now(), due = claim->held_until() - margin;
        if (now >= due) {
            stopped_at = now;
            lease_end = claim->held_until();
            stopped.store(true, std::memory_order_release);
            return stop.fire();
        }
        timer.expires_after(std::min<boot_clock::duration>(due - now, claim->on().timeout() / 8));
        timer.async_wait([weak = weak_from_this()](std::error_code cancelled) {
            if (const auto self = weak.lock(); self && !cancelled) self->look();
        });
    }

    const std::shared_ptr<lock_claim> claim;
    const std::chrono::nanoseconds margin;
    const one_shot_event stop;
    asio::steady_timer timer;
    bool over = false;  // the lease_alarm is destroyed
    std::atomic<bool> stopped{false};
    boot_clock::time_point stopped_at{}, lease_end{};  // written before `stopped`
};

lease_alarm::lease_alarm(std::shared_ptr<lock_claim> claim, std::chrono::nanoseconds margin)
    : state_(std::make_shared<state>(std::move(claim), margin)) {
    asio::dispatch(state_->claim->on().get_executor(), [s = state_] { s->look(); });
}

lease_alarm::~lease_alarm() {
    try {
        asio::dispatch(state_->claim->on().get_executor(), [s = state_] {
            s->over = true;
            s->timer.cancel();
        });
    } catch (...) {
    }
}

const one_shot_event& lease_alarm::stop() const noexcept { return state_->stop; }

bool lease_alarm::stopped() const noexcept { return state_->stopped.load(std::memory_order_acquire); }

void lease_alarm::report() const noexcept {
    if (!stopped()) return;
    try {
        lock_stop_report r;
        r.path = state_->claim->paths().front();
        r.token = state_->claim->token();
        r.margin = state_->margin;
        r.stopped = state_->stopped_at;
        r.lease_end = state_->lease_end;
        r.overran = !state_->claim->held();
        r.ended = boot_clock::now();
        toolbox(state_->claim->on()).report(r);
    } catch (...) {
    }
}

}  // namespace zkasio::lock_detail
