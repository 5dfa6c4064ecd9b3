#include <zkasio/locks/lock_guard.hpp>

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/locks/detail/revocation_watch.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/structure_reports.hpp>

#include <asio/dispatch.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace zkasio {
namespace {

// Stops a body some time before the lease of its lock ends, unless the lease is renewed before.
class lease_alarm {
public:
    // @param margin above 0. @param stop fired when the lease has no more than the margin left.
    lease_alarm(std::shared_ptr<lock_claim> claim, std::chrono::nanoseconds margin, one_shot_event stop)
        : state_(std::make_shared<state>(std::move(claim), margin, std::move(stop))) {
        asio::dispatch(state_->claim->on().get_executor(), [s = state_] { s->look(); });
    }
    lease_alarm(const lease_alarm&) = delete;
    lease_alarm& operator=(const lease_alarm&) = delete;
    ~lease_alarm() {
        try {
            asio::dispatch(state_->claim->on().get_executor(), [s = state_] {
                s->over = true;
                s->timer.cancel();
            });
        } catch (...) {
        }
    }

    // Whether this alarm has fired. From any thread.
    bool stopped() const noexcept { return state_->stopped.load(std::memory_order_acquire); }

    // Reports that the body has ended, if the alarm has fired.
    void report() const noexcept {
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

private:
    // The timer lives on the strand.
    struct state : std::enable_shared_from_this<state> {
        state(std::shared_ptr<lock_claim> c, std::chrono::nanoseconds m, one_shot_event s)
            : claim(std::move(c)), margin(m), stop(std::move(s)), timer(claim->on().get_executor()) {}

        // A loss of the lock stops the body by itself. The lease may be renewed meanwhile, or, by a reconnect to a
        // server that grants a shorter session timeout, end earlier: so its end is looked up at short intervals.
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
    std::shared_ptr<state> state_;
};

}  // namespace

lock_guard::lock_guard(std::shared_ptr<lock_claim> claim, std::shared_ptr<const void> open)
    : open_(std::move(open)), claim_(std::move(claim)), token_(claim_->token(), claim_->turn()) {}

lock_guard::lock_guard(lock_guard&& other) noexcept
    : open_(std::move(other.open_)),
      claim_(other.claim_),
      token_(other.token_),
      released_(other.released_.exchange(true)) {}

lock_guard& lock_guard::operator=(lock_guard&& other) noexcept {
    if (this != &other) {
        give_up();
        claim_ = other.claim_;
        open_ = std::move(other.open_);
        token_ = other.token_;
        released_ = other.released_.exchange(true);
    }
    return *this;
}

const std::string& lock_guard::path() const noexcept {
    static const std::string none;
    return claim_ ? claim_->paths().front() : none;
}

const std::vector<std::string>& lock_guard::paths() const noexcept {
    static const std::vector<std::string> none;
    return claim_ ? claim_->paths() : none;
}

std::shared_ptr<lock_claim> lock_guard::give_up() noexcept {
    if (released_.exchange(true)) return nullptr;
    assert(claim_ && "a guard without a claim counts as released");
    claim_->give_up();
    return claim_;
}

// The coroutines of the members keep what they need: the guard may be moved, or destroyed, before they are awaited.
namespace {

using claim_ptr = std::shared_ptr<lock_claim>;

[[noreturn]] void refuse_released(std::string_view operation, const claim_ptr& claim) {
    throw error(errc::lock_released, operation, claim ? claim->paths().front() : std::string());
}

// The path in messages: the node that is gone, or else the first.
std::string lost_path(const claim_ptr& claim) {
    std::string path = claim->hold().lost_path();
    return path.empty() ? claim->paths().front() : path;
}

// Keeps the client open until the claim is gone.
asio::awaitable<void> until_gone(claim_ptr claim, [[maybe_unused]] std::shared_ptr<const void> open) {
    if (!claim) co_return;
    try {
        co_await claim->gone();
    } catch (const error& e) {
        // The node has gone with the session, unless the session is the parent process's.
        if (e.code() != condition::session_ended || e.code() == errc::forked) throw;
    }
}

asio::awaitable<loss_reason> until_lost(claim_ptr claim) {
    if (!claim) co_return loss_reason::released;
    co_return co_await claim->hold().lost();
}

using plain_body = std::function<asio::awaitable<void>()>;

void check_margin(const claim_ptr& claim, std::chrono::nanoseconds margin, std::string_view operation) {
    // A renewal is sent when more than this, and T/16, is left of the lease, see lease_renewal.
    const boot_clock::duration half = boot_clock::duration(claim->on().timeout()) / 2;
    const std::chrono::nanoseconds most = half - claim->on().renewal_interval();
    if (margin >= std::chrono::nanoseconds::zero() && margin <= most) return;
    throw error(errc::invalid_argument, operation, claim->paths().front(),
                "a stop margin is between 0 and half the session timeout less client_options::lease_renewal(): " +
                    std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(most).count()) + " ms");
}

asio::awaitable<boot_clock::time_point> until_extended(claim_ptr claim, bool released, boot_clock::time_point beyond);

// Until the lease has more than the margin left, or the lock is lost or released.
asio::awaitable<void> until_longer_than(const claim_ptr& claim, std::chrono::nanoseconds margin) {
    while (claim->reason() == loss_reason::none) {
        const boot_clock::time_point until = claim->held_until();
        if (until - margin > boot_clock::now()) co_return;
        const auto extended = co_await as_result(until_extended(claim, false, until));
        if (claim->reason() == loss_reason::none) extended.value();  // throws, where the wait was cancelled
    }
}

// What may stop a body before its lock is lost: the end of the lease comes near, or the lock is asked back.
struct body_stop {
    std::chrono::nanoseconds margin;
    std::optional<std::chrono::nanoseconds> grace;
    bool begun = false, stopped = false;  // with the margin; also stopped: another body was, before this one has begun
    std::exception_ptr thrown{};          // by the body; also the cancellation of a body that was stopped
};

// Runs the body until it has ended, or is stopped and has ended.
asio::awaitable<void> run_until_stopped(const claim_ptr& claim, const plain_body& body, body_stop& run,
                                        std::string_view operation) {
    const one_shot_event stop = toolbox(claim->on()).make_one_shot_event();
    std::optional<lease_alarm> alarm;
    std::optional<lock_detail::revocation_watch> requests;  // a grace that has begun goes on while the body waits
    if (run.grace) requests.emplace(claim).stop_after(*run.grace, stop);
    if (run.margin > std::chrono::nanoseconds::zero()) {
        co_await until_longer_than(claim, run.margin);
        const loss_reason lost = claim->reason();
        if (lost == loss_reason::released) refuse_released(operation, claim);
        if (is_loss(lost)) co_return;
        run.begun = claim->margin_begins();
        run.stopped = !run.begun;
        if (run.stopped) co_return;
        alarm.emplace(claim, run.margin, stop);
    }
    plain_body noted = lock_detail::noting(body, run.thrown);
    bool finished = false;
    std::exception_ptr failed;
    try {
        finished = co_await stop.run_until(noted);
    } catch (...) {
        failed = std::current_exception();
    }
    if (alarm) alarm->report();
    run.stopped = !finished && alarm && alarm->stopped();
    if (!finished && requests && requests->stopped())
        throw_with_body_failure(error(errc::revoked, operation, claim->paths().front()), failed ? failed : run.thrown);
    if (failed) std::rethrow_exception(failed);
}

// The failure of a wait that ends with the lock.
[[noreturn]] void throw_end(const claim_ptr& claim, std::string_view operation, const std::exception_ptr& failed) {
    const loss_reason why = claim->hold().reason();
    if (why == loss_reason::released) refuse_released(operation, claim);
    if (why != loss_reason::none) throw error(errc::lock_lost, operation, lost_path(claim), to_string(why));
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error&) {
        rethrow_as(operation, claim->paths().front());
    }
}

asio::awaitable<void> until_revoked(claim_ptr claim, bool released) {
    if (released) refuse_released("revoke_requested", claim);
    const lock_detail::revocation_watch watch(claim);
    plain_body asked = [&] { return watch.asked(); };
    std::exception_ptr failed;
    try {
        co_await claim->hold().run(std::move(asked));
    } catch (...) {
        failed = std::current_exception();
    }
    if (failed) throw_end(claim, "revoke_requested", failed);
}

asio::awaitable<void> fire_when_lost(claim_ptr claim, one_shot_event over) {
    co_await claim->hold().lost();
    over.fire();
}

asio::awaitable<boot_clock::time_point> until_extended(claim_ptr claim, bool released, boot_clock::time_point beyond) {
    if (released) refuse_released("lease_extended", claim);
    boot_clock::time_point until{};
    auto wait = [&](task_scope& tasks) -> asio::awaitable<void> {
        const one_shot_event over = toolbox(claim->on()).make_one_shot_event();
        tasks.spawn(fire_when_lost(claim, over));
        plain_body extended = [&]() -> asio::awaitable<void> { co_await claim->on().lease_extended(beyond); };
        co_await over.run_until(std::move(extended));
        until = claim->held_until();
        tasks.cancel();
    };
    std::exception_ptr failed;
    try {
        co_await with_task_scope(wait);
    } catch (...) {
        failed = std::current_exception();
    }
    if (failed || until <= beyond)  // or lost in the moment of the extension
        throw_end(claim, "lease_extended",
                  failed ? failed : std::make_exception_ptr(std::system_error(asio::error::operation_aborted)));
    co_return until;
}

}  // namespace

asio::awaitable<void> lock_guard::release() {
    claim_ptr claim = give_up();
    if (!claim) return until_gone(nullptr, nullptr);
    return until_gone(std::move(claim), std::move(open_));
}

asio::awaitable<loss_reason> lock_guard::lost() const { return until_lost(is_released() ? nullptr : claim_); }

void lock_detail::require_held(const claim_ptr& claim, bool released, std::string_view operation) {
    // The guard may have been released since the caller looked.
    if (released || claim->reason() == loss_reason::released) refuse_released(operation, claim);
    if (!claim->proves())
        throw error(errc::invalid_argument, operation, claim->paths().front(),
                    "the node of this kind of lock may be another client's: use mutex");
    if (!claim->held()) throw error(errc::lock_lost, operation, lost_path(claim), why_not_held(claim->reason()));
}

void lock_detail::throw_if_lost(const claim_ptr& claim, const error& e, std::string_view operation) {
    const std::vector<std::string>& ours = claim->paths();
    const bool node_gone = e.code() == zk_errc::no_node && std::find(ours.begin(), ours.end(), e.path()) != ours.end();
    if (!node_gone && e.code() != errc::session_expired) return;
    if (node_gone && claim->reason() == loss_reason::released)
        throw error(errc::lock_released, operation, e.path(), {}, e.outcome_unknown());
    if (node_gone) claim->hold().lose(loss_reason::node_deleted, e.path());
    throw error(errc::lock_lost, operation, e.path(),
                to_string(node_gone ? loss_reason::node_deleted : loss_reason::session_expired), e.outcome_unknown());
}

std::function<asio::awaitable<void>()> lock_detail::noting(const std::function<asio::awaitable<void>()>& body,
                                                           std::exception_ptr& thrown) {
    return [&body, &thrown]() -> asio::awaitable<void> {
        try {
            co_await body();
        } catch (...) {
            thrown = std::current_exception();
            throw;
        }
    };
}

asio::awaitable<void> lock_detail::run_under(claim_ptr claim, bool released, plain_body body,
                                             std::chrono::nanoseconds margin, std::string operation,
                                             std::optional<std::chrono::nanoseconds> grace) {
    // The guard may have been released since run() was called.
    if (released || claim->reason() == loss_reason::released) refuse_released(operation, claim);
    if (!body) throw error(errc::invalid_argument, operation, claim->paths().front(), "the body is empty");
    check_margin(claim, margin, operation);
    body_stop run{margin, grace};
    if (margin > std::chrono::nanoseconds::zero() || grace)
        body = [&, inner = std::move(body)] { return run_until_stopped(claim, inner, run, operation); };
    asio::any_io_executor executor;
    std::function<asio::awaitable<void>()> known = [&]() -> asio::awaitable<void> {
        executor = co_await asio::this_coro::executor;
        claim->body_begins(executor);
        if (!is_loss(claim->hold().reason())) co_await body();
    };
    std::exception_ptr failed;
    try {
        co_await claim->hold().run(std::move(known));
    } catch (...) {
        failed = std::current_exception();
    }
    // A body may release the lock itself without an error. One that was stopped was cut off, whatever keeps the lock:
    // another body, or another guard of its owner. One that was not is not told that the lock is given back behind it.
    loss_reason why = claim->hold().reason();
    if (run.stopped && !is_loss(why)) why = loss_reason::lease_ended;
    if (run.begun) claim->margin_ends(run.stopped);
    if (executor) claim->body_ends(executor);
    if (is_loss(why))
        throw_with_body_failure(error(errc::lock_lost, operation, lost_path(claim), to_string(why)),
                                failed ? failed : run.thrown);
    if (failed) std::rethrow_exception(failed);
}

asio::awaitable<std::vector<step_result>> lock_detail::commit_under(claim_ptr claim, bool released, transaction steps,
                                                                    std::string operation) {
    require_held(claim, released, operation);
    try {
        co_return co_await toolbox(claim->on()).multi_behind(claim->paths(), std::move(steps), operation);
    } catch (const error& e) {
        throw_if_lost(claim, e, operation);
        throw;
    }
}

asio::awaitable<std::vector<step_result>> lock_guard::commit(transaction steps) const {
    return lock_detail::commit_under(claim_, is_released(), std::move(steps), "commit");
}

asio::awaitable<void> lock_guard::run_body(std::function<asio::awaitable<void>()> body, claim_ptr claim,
                                           bool released, std::chrono::nanoseconds stop_margin) {
    return lock_detail::run_under(std::move(claim), released, std::move(body), stop_margin, "run");
}

asio::awaitable<void> lock_guard::revoke_requested() const { return until_revoked(claim_, is_released()); }
asio::awaitable<boot_clock::time_point> lock_guard::lease_extended(boot_clock::time_point beyond) const {
    return until_extended(claim_, is_released(), beyond);
}

}  // namespace zkasio
