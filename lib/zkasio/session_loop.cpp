#include <zkasio/session_loop.hpp>

#include <zkasio/back_off.hpp>
#include <zkasio/detail/base/run_cancellable.hpp>
#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/results.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <string_view>
#include <system_error>

namespace zkasio {

using namespace detail;

// The state that a handle shares with its loop. On the strand.
struct detail::session_loop_state {
    session_loop_state(core_ptr c, view_root r, std::shared_ptr<const void> keeps_open, session_body b)
        : core(std::move(c)), root(r), open(std::move(keeps_open)), body(std::move(b)) {}

    void begin_stop() {
        if (ended->done || stop->done) return;
        stopping = core->begin_work();
        core->waits().fire(stop);
    }

    // The body is destroyed before the waiters are told.
    void end(std::exception_ptr why) {
        failed = std::move(why);
        body = nullptr;
        core->waits().fire(ended);
        stopping.reset();
        open.reset();
    }

    core_ptr core;
    view_root root;  // see client::rooted()
    std::shared_ptr<const void> open;      // client::keep_open(), until the loop has ended
    std::shared_ptr<const void> stopping;  // work in the background, once the loop was told to stop
    session_body body;
    std::exception_ptr failed;  // the error that has ended the loop; null after stop() or the body's return
    bool outcome_unknown = false;  // of a write of the body, as it has ended last
    one_shot_ptr stop = std::make_shared<one_shot_state>(), ended = std::make_shared<one_shot_state>();
};

namespace {

using loop_ptr = std::shared_ptr<session_loop_state>;
constexpr std::string_view operation_of_loop = "run_in_each_session";
constexpr std::chrono::milliseconds shortest_wait(100);

bool always(std::error_code) { return true; }

// Waits for a connected session, for as long as the client may get a connection.
asio::awaitable<session_record_ptr> next_session(core_ptr core) {
    for (;;) {
        reply r;
        co_await wait_connected(core, r);
        if (r.code != errc::not_connected) throw_if_failed(r, operation_of_loop, {});
        // With a very short connection_timeout, these waits would follow each other without an end.
        if (r.code && core->options().connection_timeout() < shortest_wait) {
            asio::steady_timer timer(co_await asio::this_coro::executor, shortest_wait);
            co_await timer.async_wait(asio::use_awaitable);
        }
        // The connection, and the session with it, may be gone since that answer was posted.
        const session_record_ptr now = core->sessions().current();
        if (!r.code && core->state() == session_state::connected && !now->over) co_return now;
    }
}

asio::awaitable<void> run_once(loop_ptr loop, session_record_ptr record) {
    const session on = access::make<session>(loop->core, record, loop->root);
    std::function<asio::awaitable<void>()> body = [&loop, &on] { return loop->body(on); };
    arm_function arm = [core = loop->core, record](const std::shared_ptr<body_run>& run) {
        return stop_when(core, record->ended, run, &always);
    };
    co_await run_cancellable(std::move(body), std::move(arm), body_strand::callers);
}

// Whether the body has failed only because its session has ended, or because its connection was lost.
bool is_to_be_repeated(const std::exception_ptr& thrown, bool session_is_over) {
    std::error_code code;
    try {
        std::rethrow_exception(single_cancellation(thrown));
    } catch (const std::system_error& e) {
        code = e.code();
    } catch (...) {
        return false;
    }
    if (code == condition::retryable) return true;
    return session_is_over &&
           (code == condition::cancelled || code == condition::session_ended || code == errc::lock_lost);
}

asio::awaitable<void> run_in_sessions(loop_ptr loop) {
    back_off pauses = access::make<back_off>(loop->core);
    session_pace pace = access::make<session_pace>(loop->core);
    session_record_ptr before;
    for (;;) {
        session_record_ptr record = co_await next_session(loop->core);
        // Also if the body has heard of the end of the connection alone: the session may have ended with it.
        if (record != before) {
            pauses.reset();
            if (before) {
                co_await pace.pause();
                record = co_await next_session(loop->core);
            }
        }
        before = record;
        const auto began = boot_clock::now();
        std::exception_ptr failed;
        try {
            co_await run_once(loop, record);
        } catch (...) {
            failed = std::current_exception();
        }
        if (!failed) co_return;
        loop->outcome_unknown = leaves_outcome_unknown(failed);
        if (!is_to_be_repeated(failed, record->over)) std::rethrow_exception(failed);
        if (record->over) continue;
        if (boot_clock::now() - began > std::chrono::milliseconds(record->timeout_ms)) pauses.reset();
        co_await pauses.pause();
    }
}

std::exception_ptr refusal_of(const core& core) {
    return std::make_exception_ptr(error(core.forked() ? errc::forked : errc::client_closed, operation_of_loop));
}

// The end of the session or of the client, with the outcome of what the last body has written.
std::exception_ptr with_outcome_of_body(const std::exception_ptr& why, const session_loop_state& loop) {
    try {
        if (why && loop.outcome_unknown) std::rethrow_exception(why);
    } catch (const error& e) {
        if (e.code() == condition::session_ended)
            return std::make_exception_ptr(error(e.code(), e.operation(), e.path(), e.hint(), true));
    } catch (...) {
    }
    return why;
}

// Cancelled by the core when the client is closed, and in a child process.
asio::awaitable<void> run_loop(loop_ptr loop) {
    std::exception_ptr failed;
    std::function<asio::awaitable<void>()> sessions = [&loop] { return run_in_sessions(loop); };
    arm_function arm = [core = loop->core, stop = loop->stop](const std::shared_ptr<body_run>& run) {
        return stop_when(core, stop, run, &always);
    };
    try {
        co_await run_cancellable(std::move(sessions), std::move(arm), body_strand::callers);
    } catch (...) {
        failed = std::current_exception();
    }
    const bool cancelled = failed && is_cancellation(failed);
    if (loop->stop->done) {
        loop->end(nullptr);
        // The exception is thrown so that the core logs it. A connection that was lost while the loop stopped is no
        // failure of the body.
        if (failed && !cancelled && !is_to_be_repeated(failed, false)) std::rethrow_exception(failed);
        co_return;
    }
    const bool by_core = loop->core->forked() || loop->core->is_closing();
    loop->end(with_outcome_of_body(cancelled && by_core ? refusal_of(*loop->core) : failed, *loop));
    if (failed) std::rethrow_exception(failed);
}

asio::awaitable<void> until_stopped(loop_ptr loop) {
    if (!loop) co_return;
    const wait_end over = co_await wait_for(loop->core, loop->ended);
    if (over.code) throw error(over.code, "stopped");
    if (loop->failed) std::rethrow_exception(loop->failed);
}

}  // namespace

session_loop detail::start_session_loop(client zk, session_body body, session_loop_end on_end) {
    const core_ptr core = there(access::core_of(zk), operation_of_loop);
    if (!body) throw error(errc::invalid_argument, operation_of_loop, {}, "the body is empty");
    const auto loop = std::make_shared<session_loop_state>(core, access::root_of(zk), zk.keep_open(), std::move(body));
    if (on_end) loop->ended->call([&l = *loop, f = std::move(on_end)] { f(l.failed); });
    // Posted: the body does not begin within the call.
    asio::post(core->strand(), [loop] {
        if (loop->stop->done)
            loop->end(nullptr);
        else if (!loop->core->run_until_closed(run_loop(loop)))
            loop->end(refusal_of(*loop->core));
    });
    return access::make<session_loop>(loop);
}

session_loop& session_loop::operator=(session_loop&& other) noexcept {
    if (this != &other) {
        stop();
        state_ = std::move(other.state_);
    }
    return *this;
}

void session_loop::stop() noexcept {
    if (state_) on_strand(state_->core, [loop = state_] { loop->begin_stop(); });
}

asio::awaitable<void> session_loop::stopped() const { return until_stopped(state_); }

}  // namespace zkasio
