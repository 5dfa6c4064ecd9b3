#include "supervise.hpp"

#include "duration.hpp"
#include "terminal.hpp"

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>

#include <asio/buffer.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include <fcntl.h>

namespace zklock {
namespace {

using zkasio::boot_clock;
using zkasio::loss_reason;
using namespace std::chrono_literals;

// One command under one guard. What happens is noticed by coroutines of one scope, on one strand.
class supervisor {
public:
    supervisor(const zkasio::lock_guard& guard, supervision how, signal_router& signals, asio::any_io_executor executor)
        : guard_(guard), how_(how), signals_(signals), child_(executor, how.killer), timer_(executor),
          margin_(kill_margin(how.session_timeout)),
          warning_(std::min<boot_clock::duration>(how.grace, how.session_timeout / 5)) {}

    asio::awaitable<verdict> run(command what) {
        renew();
        auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
            signals_.forward_to([this](int number) { child_.signal(number); });
            tasks.spawn(keep_deadline());
            tasks.spawn(await_loss());
            if (how_.revoke != on_revoke::ignore) tasks.spawn(await_revocation());
            if (how_.killer) tasks.spawn(await_watchdog());
            if (!verdict_.held && how_.loss != on_loss::warn) {  // too late, before it has begun
                tasks.cancel();
                co_return;
            }
            co_await child_.start(std::move(what));
            verdict_.wait_status = co_await child_.ended();
            tasks.cancel();
        };
        co_await zkasio::with_task_scope(body);
        judge();
        co_return verdict_;
    }

    ~supervisor() { signals_.forward_to(nullptr); }

private:
    boot_clock::duration left() const noexcept { return guard_.held_until() - margin_ - boot_clock::now(); }

    void renew() noexcept {
        if (how_.killer) how_.killer->set_deadline(guard_.held_until() - margin_);
    }

    // The lease moves ahead with each heartbeat. The watchdog has to know long before it would act.
    asio::awaitable<void> keep_deadline() {
        while (verdict_.held) {
            renew();
            const boot_clock::duration rest = left();
            if (rest <= 0s) {
                lose(loss_reason::lease_ended);
                continue;
            }
            boot_clock::duration pause = rest / 2;
            if (how_.loss == on_loss::term && !warned_) {
                if (rest <= warning_)
                    warn();
                else
                    pause = std::min(pause, rest - warning_);
            }
            co_await sleep(std::max<boot_clock::duration>(pause, 1ms));
        }
        if (how_.loss != on_loss::term || !child_.running()) co_return;
        co_await sleep(last_ - boot_clock::now());
        child_.signal(SIGKILL);
    }

    // No server has confirmed the session for a while, and the end of the lease is near.
    void warn() {
        warned_ = true;
        say("the lock is about to be lost; SIGTERM to the command");
        child_.signal(SIGTERM);
        child_.signal(SIGCONT);
    }

    asio::awaitable<void> await_loss() {
        const loss_reason why = co_await guard_.lost();
        lose(why);
        timer_.cancel();
    }

    void lose(loss_reason why) {
        if (!verdict_.held) return;
        verdict_.held = false;
        verdict_.why = why;
        say("the lock is lost: " + std::string(to_string(why)));
        if (how_.loss == on_loss::warn) return;
        // A lease that ends was foreseen, and ends everything. Else somebody else may have the lock already.
        const bool foreseen = why == loss_reason::lease_ended || how_.loss == on_loss::kill;
        if (foreseen) {
            child_.signal(SIGKILL);
            last_ = boot_clock::now();
            return;
        }
        last_ = boot_clock::now() + how_.grace;
        how_.killer->set_deadline(last_);
        warn();
    }

    asio::awaitable<void> await_revocation() {
        const auto asked = co_await zkasio::as_result(guard_.revoke_requested());
        if (!asked) co_return;  // lost, which is noticed elsewhere
        const bool kill = how_.revoke == on_revoke::kill;
        say(std::string("somebody asks for the lock back; ") + (kill ? "SIGKILL" : "SIGTERM") + " to the command");
        child_.signal(kill ? SIGKILL : SIGTERM);
        child_.signal(SIGCONT);
    }

    // Without it, nothing would kill the command if we were stopped: then it does not run either.
    asio::awaitable<void> await_watchdog() {
        const int ours = ::fcntl(how_.killer->descriptor(), F_DUPFD_CLOEXEC, 0);
        asio::posix::stream_descriptor socket(timer_.get_executor(), ours);
        std::error_code woken;
        char byte = 0;
        co_await socket.async_read_some(asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, woken));
        if (woken == asio::error::operation_aborted) co_return;
        verdict_.unguarded = true;
        say("the watchdog has been killed, and without it the command does not run either");
        child_.signal(SIGKILL);
    }

    asio::awaitable<void> sleep(boot_clock::duration d) {
        std::error_code woken;
        timer_.expires_after(d);
        co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        const asio::cancellation_state cancelled = co_await asio::this_coro::cancellation_state;
        if (cancelled.cancelled() != asio::cancellation_type::none) throw std::system_error(woken);
    }

    // The command may have ended in the very moment in which the lease did.
    void judge() {
        if (verdict_.held && !guard_.held()) lose(guard_.reason() == loss_reason::none ? loss_reason::lease_ended
                                                                                       : guard_.reason());
        if (verdict_.held && how_.killer && how_.killer->has_fired()) lose(loss_reason::lease_ended);
    }

    const zkasio::lock_guard& guard_;
    const supervision how_;
    signal_router& signals_;
    child_process child_;
    asio::steady_timer timer_;
    const boot_clock::duration margin_, warning_;
    boot_clock::time_point last_;  // when a lost command is killed
    bool warned_ = false;
    verdict verdict_;
};

}  // namespace

asio::awaitable<verdict> supervise(const zkasio::lock_guard& guard, command what, supervision how,
                                   signal_router& signals) {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    supervisor s(guard, how, signals, executor);
    co_return co_await s.run(std::move(what));
}

std::chrono::milliseconds kill_margin(std::chrono::milliseconds session_timeout) noexcept {
    return std::clamp<std::chrono::milliseconds>(session_timeout / 40, 20ms, 250ms);
}

}  // namespace zklock
