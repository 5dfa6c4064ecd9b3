#include <zkasio/locks/cohort_mutex.hpp>

#include <zkasio/client.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/cohort/cohort.hpp>
#include <zkasio/locks/detail/cohort/cohort_turn.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/awaitable.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace zkasio::lock_detail {

/// Waits for a turn at the lock. Empty if another contender has the lock and the call was not to wait.
/// @param came when the caller began to wait, in an earlier session: it is ahead of coroutines that came later.
/// @tparam Result lock_guard, for a call that waits, or std::optional<lock_guard>.
/// @param spec null if its object was moved from: errc::invalid_argument.
///
/// *Fails with* the errors of lockable::acquire().
/// *Cancellation*: leaves no turn behind, and no node if no other coroutine waits.
template <class Result>
asio::awaitable<Result> take_turn(client zk, cohort_spec_ptr spec, if_contended when_contended,
                                  const acquire_options& how,
                                  boot_clock::time_point came = boot_clock::time_point::max());

namespace {

using claim_ptr = std::shared_ptr<lock_claim>;

template <class Result>
Result as_result(lock_guard guard) {
    if constexpr (std::is_same_v<Result, std::optional<lock_guard>>) {
        std::optional<lock_guard> result;
        if (guard.claim()) result.emplace(std::move(guard));
        return result;
    } else if constexpr (std::is_same_v<Result, lock_guard>) {
        return guard;
    } else {
        return guard.take_claim();
    }
}

asio::awaitable<std::shared_ptr<cohort>> find_cohort(client zk, cohort_spec_ptr spec) {
    const std::string path = spec ? spec->lock->directory : std::string();
    if (!spec || zk.state() != session_state::connected) co_await toolbox(zk).connected("acquire", path);
    if (auto found = spec->last(); found && !found->over()) co_return found;
    const session on = zk.session_now();
    const auto find = [on, spec] { return cohort::of(on, spec); };
    co_return co_await asked_on_strand(on, "acquire", path, find);
}

template <class Result>
asio::awaitable<Result> take(client zk, cohort_spec_ptr spec, if_contended when_contended,
                             boot_clock::time_point came) {
    std::shared_ptr<cohort> of = spec ? spec->last() : nullptr;
    if (of) {
        if (of->must_yield()) co_await yield_turn();
        std::shared_ptr<cohort_turn> turn = of->take_at_once();
        if (turn) co_return as_result<Result>(lock_guard(std::move(turn), zk.keep_open()));
    }
    if (!of || of->over() || zk.state() != session_state::connected) {
        came = std::min(came, boot_clock::now());  // ahead of coroutines that find the cohort sooner
        of = co_await find_cohort(zk, spec);
    }
    lock_guard guard = co_await cohort_turn::next(std::move(of), when_contended, zk.keep_open(), came);
    co_return as_result<Result>(std::move(guard));
}

template <class Result>
asio::awaitable<Result> take_as(client zk, cohort_spec_ptr spec, if_contended when_contended,
                                boot_clock::time_point came, lock_owner owner) {
    const lock_spec& lock = *spec->lock;
    const std::string key = zk.options().servers() + ' ' + lock.names.exclusive() + ' ' + lock.directory;
    std::function<asio::awaitable<claim_ptr>()> acquire = [&] {
        return take<claim_ptr>(zk, spec, when_contended, came);
    };
    claim_ptr claim;
    if (when_contended == if_contended::give_up)
        claim = co_await owner.try_acquire(zk, key, lock.directory, lock_kind::exclusive, acquire);
    else
        claim = co_await owner.acquire(zk, key, lock.directory, lock_kind::exclusive, acquire);
    co_return as_result<Result>(claim ? lock_guard(std::move(claim), zk.keep_open()) : lock_guard());
}

template <class Result>
asio::awaitable<Result> data_refused(lock_spec_ptr lock) {
    throw error(errc::invalid_argument, "acquire", lock->directory,
                "the turns of a cohort share one node: its data are the lock's");
    co_return Result();
}

}  // namespace

template <class Result>
asio::awaitable<Result> take_turn(client zk, cohort_spec_ptr spec, if_contended when_contended,
                                  const acquire_options& how, boot_clock::time_point came) {
    if (spec && how.data()) return data_refused<Result>(spec->lock);
    // Where the wait is certain, one frame is enough for all of it.
    if constexpr (std::is_same_v<Result, lock_guard>) {
        std::shared_ptr<cohort> of = spec && !how.owner() ? spec->last() : nullptr;
        if (of && zk.state() == session_state::connected && of->is_busy())
            return cohort_turn::next(std::move(of), when_contended, zk.keep_open());
    }
    if (how.owner() && spec) return take_as<Result>(std::move(zk), std::move(spec), when_contended, came, *how.owner());
    return take<Result>(std::move(zk), std::move(spec), when_contended, came);
}

template asio::awaitable<lock_guard> take_turn(client, cohort_spec_ptr, if_contended, const acquire_options&,
                                               boot_clock::time_point);
template asio::awaitable<std::optional<lock_guard>> take_turn(client, cohort_spec_ptr, if_contended,
                                                              const acquire_options&, boot_clock::time_point);

}  // namespace zkasio::lock_detail

namespace zkasio {

using namespace lock_detail;

namespace {

[[noreturn]] void refuse(std::string_view why) { throw error(errc::invalid_argument, "cohort_mutex", {}, why); }

}  // namespace

cohort_mutex_options& cohort_mutex_options::turns(std::uint64_t most) {
    if (most == 0) refuse("a cohort takes one turn at least");
    turns_ = most;
    return *this;
}

cohort_mutex_options& cohort_mutex_options::tenure(any_duration most) {
    const std::chrono::nanoseconds time = most;
    if (time < std::chrono::nanoseconds::zero()) refuse("a tenure is not negative");
    tenure_ = time;
    return *this;
}

cohort_mutex_options& cohort_mutex_options::linger(any_duration most) {
    const std::chrono::nanoseconds time = most;
    if (time < std::chrono::nanoseconds::zero()) refuse("the time to linger is not negative");
    linger_ = time;
    return *this;
}

cohort_mutex::cohort_mutex(client zk, std::string path, cohort_mutex_options options)
    : lockable("cohort_mutex", std::move(zk), std::move(path)) {
    std::string directory = this->directory();
    queue_names names(options.names(), options.names().mutex_marker(), {}, directory);
    auto lock = std::make_shared<const lock_spec>(std::move(directory), std::move(names), options.data(),
                                                  options.acl(), options.names().directory_stays());
    tenure_limits limits;
    limits.turns = options.turns();
    limits.tenure = options.tenure();
    limits.linger = options.linger();
    spec_ = std::make_shared<const cohort_spec>(std::move(lock), limits);
}

// A waiting turn has no node that could go with its session: a later attempt of the same acquire is ahead of coroutines
// that came later.
lock_attempt cohort_mutex::attempts(acquire_options how) const {
    const auto came = std::make_shared<std::optional<boot_clock::time_point>>();
    return [zk = on(), spec = spec_, how = std::move(how), came](if_contended when_contended) {
        if (!*came) *came = boot_clock::now();
        return take_turn<std::optional<lock_guard>>(zk, spec, when_contended, how, **came);
    };
}

asio::awaitable<lock_guard> cohort_mutex::wait_for_lock(acquire_options how) const {
    return take_turn<lock_guard>(on(), spec_, if_contended::wait, how);
}

std::exception_ptr cohort_mutex::refusal() const { return refusal_without_id(spec_ ? spec_->lock : nullptr, path()); }

asio::awaitable<std::vector<contender_info>> cohort_mutex::contenders() const {
    return lock_detail::contenders(view(), path(), spec_ ? spec_->lock : nullptr);
}

}  // namespace zkasio
