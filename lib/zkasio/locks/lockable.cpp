#include <zkasio/locks/lockable.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/detail/in_view.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

namespace zkasio {

using namespace lock_detail;

namespace {

// Runs `attempt`, again with the next session whenever one expires. If no session follows, connected() throws.
asio::awaitable<std::optional<lock_guard>> survive_expiry(client zk, std::string path, lock_attempt attempt,
                                                          if_contended when_contended) {
    session_pace pace = toolbox(zk).make_session_pace();
    for (;;) {
        try {
            co_return co_await attempt(when_contended);
        } catch (const error& e) {
            if (e.code() != errc::session_expired) throw;
        }
        co_await pace.pause("acquire", path);
        co_await toolbox(zk).connected("acquire", path);
    }
}

// The guard of an attempt that never ends without one.
asio::awaitable<lock_guard> require_guard(asio::awaitable<std::optional<lock_guard>> attempt) {
    std::optional<lock_guard> guard = co_await std::move(attempt);
    if (!guard)
        throw error(
            errc::invalid_argument, "acquire", {},
            "this kind of lock (lockable::attempts) has ended an attempt without a guard, although it was to wait");
    co_return std::move(*guard);
}

template <class Result>
asio::awaitable<Result> refused(std::exception_ptr why) {
    std::rethrow_exception(std::move(why));
    co_return Result();
}

// Runs `attempt`, which waits, and cancels it at the limit. If the limit has passed already, runs an attempt that does
// not wait.
// @param limit nothing: it was negative, which is refused.
// @param single runs instead of `attempt` if the limit has passed already; does not go on in another session.
asio::awaitable<std::optional<lock_guard>> acquire_within(client zk, std::string operation, std::string path,
                                                          std::optional<boot_clock::time_point> limit,
                                                          lock_attempt attempt, lock_attempt single) {
    if (!limit) throw error(errc::invalid_argument, operation, path, "a time limit is not negative");
    if (*limit <= boot_clock::now()) {
        const session_state now = zk.state();
        if (now == session_state::connecting || now == session_state::suspended) {
            co_await yield_turn();
            throw error(errc::not_connected, operation, path,
                        "there is no connection to " + zk.options().servers() + ", and no time to wait for one");
        }
        const lock_attempt& now_or_never = single ? single : attempt;
        co_return co_await now_or_never(if_contended::give_up);
    }
    std::optional<lock_guard> guard;
    bool had_connection = false;
    std::string why = "no connection to " + zk.options().servers() + " within the time limit";
    std::function<asio::awaitable<void>()> body = [&]() -> asio::awaitable<void> {
        try {
            co_await toolbox(zk).connected(operation, path);
        } catch (const error& e) {
            if (!e.hint().empty()) why = e.hint();
            throw;
        }
        had_connection = true;
        guard = co_await attempt(if_contended::wait);
    };
    co_await run_with_deadline(*limit, std::move(body));
    // A very short limit may pass before connected() has returned, even with a connection: so the state is asked, too.
    if (!guard && !had_connection && zk.state() != session_state::connected)
        throw error(errc::not_connected, operation, path, why);
    co_return guard;
}

}  // namespace

lockable::~lockable() = default;

lockable::lockable(std::string_view recipe, client zk, std::string path)
    : zk_(std::move(zk)), path_(std::move(path)) {
    if (!recipe.empty()) check_directory(recipe, zk_, path_);
    if (!zk_.is_rooted()) return;
    view_ = std::make_shared<const client>(zk_);
    zk_ = zk_.unrooted();
}

std::string lockable::directory() const { return toolbox(view()).whole_path(path_); }
client lockable::view() const { return view_ ? *view_ : zk_; }

// attempts(), as a caller in the view sees them.
lock_attempt lockable::attempts_in_view(acquire_options how) const {
    if (!view_) return attempts(std::move(how));
    return in_view(view(), attempts(for_client(view(), std::move(how))));
}

lock_attempt lockable::attempts_over_sessions(acquire_options how) const {
    const bool survives = how.survives_expiry();
    lock_attempt attempt = attempts_in_view(std::move(how));
    if (!survives) return attempt;
    return [zk = zk_, path = path_, attempt = std::move(attempt)](if_contended when_contended) {
        return survive_expiry(zk, path, attempt, when_contended);
    };
}

asio::awaitable<lock_guard> lockable::wait_for_lock(acquire_options how) const {
    return require_guard(attempts(std::move(how))(if_contended::wait));
}

std::exception_ptr lockable::refusal() const { return nullptr; }

asio::awaitable<lock_guard> lockable::acquire(acquire_options how) const {
    if (std::exception_ptr why = refusal()) return refused<lock_guard>(std::move(why));
    if (!how.survives_expiry() && !view_) return wait_for_lock(std::move(how));
    if (!how.survives_expiry()) return in_view(view(), wait_for_lock(for_client(view(), std::move(how))));
    return require_guard(attempts_over_sessions(std::move(how))(if_contended::wait));
}

namespace {

asio::awaitable<lock_guard> require_in_time(client zk, std::string path,
                                            asio::awaitable<std::optional<lock_guard>> acquiring) {
    std::optional<lock_guard> guard;
    try {
        guard = co_await std::move(acquiring);
    } catch (const error&) {
        rethrow_as("with_lock", path);
    }
    if (!guard)
        throw error(errc::timed_out, "with_lock", path,
                    zk.state() == session_state::connected ? "the lock was not acquired in time: list_lock() says who "
                                                             "holds it"
                                                           : "the lock was not acquired in time, and there is no "
                                                             "connection now");
    co_return std::move(*guard);
}

}  // namespace

asio::awaitable<lock_guard> lockable::acquire_for_body(const with_lock_options& how) const {
    if (!how.time_limit()) return acquire(how.acquire());
    return require_in_time(zk_, path_, try_acquire_for(*how.time_limit(), how.acquire()));
}

asio::awaitable<std::optional<lock_guard>> lockable::try_acquire(acquire_options how) const {
    if (std::exception_ptr why = refusal()) return refused<std::optional<lock_guard>>(std::move(why));
    return attempts_over_sessions(std::move(how))(if_contended::give_up);
}

asio::awaitable<std::optional<lock_guard>> lockable::try_acquire_for(any_duration limit,
                                                                     acquire_options how) const {
    if (std::exception_ptr why = refusal()) return refused<std::optional<lock_guard>>(std::move(why));
    const std::chrono::nanoseconds time = limit;
    std::optional<boot_clock::time_point> end;
    if (time >= time.zero()) end = boot_clock::after(time);
    return acquire_within(zk_, "try_acquire_for", path_, end,
                          attempts_over_sessions(how), how.survives_expiry() ? attempts_in_view(how) : nullptr);
}

asio::awaitable<std::optional<lock_guard>> lockable::try_acquire_until(boot_clock::time_point limit,
                                                                       acquire_options how) const {
    if (std::exception_ptr why = refusal()) return refused<std::optional<lock_guard>>(std::move(why));
    return acquire_within(zk_, "try_acquire_until", path_, limit,
                          attempts_over_sessions(how), how.survives_expiry() ? attempts_in_view(how) : nullptr);
}

}  // namespace zkasio
