#include <zkasio/locks/detail/cohort/take_turn.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/cohort/cohort_turn.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/recipe/one_shot_event.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <asio/dispatch.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace zkasio::lock_detail {
namespace {

template <class Result>
Result as_guard(const client& zk, std::shared_ptr<lock_claim> claim) {
    if constexpr (std::is_same_v<Result, std::optional<lock_guard>>) {
        std::optional<lock_guard> guard;
        if (claim) guard.emplace(std::move(claim), zk.keep_open());
        return guard;
    } else if constexpr (std::is_same_v<Result, lock_guard>) {
        return lock_guard(std::move(claim), zk.keep_open());
    } else {
        return claim;
    }
}

std::shared_ptr<cohort_turn> turn_at_once(const cohort_spec_ptr& spec, if_contended when_contended) {
    if (!spec) return nullptr;
    auto of = spec->last();
    if (!of) return nullptr;
    cohort& c = *of;
    auto turn = std::make_shared<cohort_turn>(std::move(of), when_contended);
    return c.take_at_once(turn) ? turn : nullptr;
}

// The cohort of the client's session. A waiting acquire does not keep the frame of this coroutine.
asio::awaitable<std::shared_ptr<cohort_turn>> turn_to_wait(const client& zk, const cohort_spec_ptr& spec,
                                                           if_contended when_contended) {
    const std::string path = spec ? spec->lock->directory : std::string();
    if (!spec || zk.state() != session_state::connected) co_await toolbox(zk).connected("acquire", path);
    std::shared_ptr<cohort> found = spec->last();
    if (!found || found->over()) {
        const session on = zk.session_now();
        const one_shot_event done = toolbox(on).make_one_shot_event();
        const auto to = std::make_shared<std::shared_ptr<cohort>>();
        asio::dispatch(on.get_executor(), [on, spec, done, to] {
            *to = cohort::of(on, spec);
            done.fire();
        });
        co_await wait_as(done, "acquire", path);
        found = *to;
    }
    co_return std::make_shared<cohort_turn>(std::move(found), when_contended);
}

template <class Result>
asio::awaitable<Result> take(client zk, cohort_spec_ptr spec, if_contended when_contended) {
    std::shared_ptr<cohort_turn> turn = turn_at_once(spec, when_contended);
    if (!turn) {
        turn = co_await turn_to_wait(zk, spec, when_contended);
        co_await cohort_turn::decided(turn);
        if (!turn->granted()) turn.reset();
    }
    co_return as_guard<Result>(zk, std::move(turn));
}

template <class Result>
asio::awaitable<Result> take_as(client zk, cohort_spec_ptr spec, if_contended when_contended, lock_owner owner) {
    const lock_spec& lock = *spec->lock;
    const std::string key = zk.options().servers() + ' ' + lock.names.exclusive() + ' ' + lock.directory;
    std::function<asio::awaitable<std::shared_ptr<lock_claim>>()> acquire = [&] { return take<std::shared_ptr<lock_claim>>(zk, spec, when_contended); };
    if (when_contended == if_contended::give_up)
        co_return as_guard<Result>(zk, co_await owner.try_acquire(zk, key, lock.directory, lock_kind::exclusive, acquire));
    co_return as_guard<Result>(zk, co_await owner.acquire(zk, key, lock.directory, lock_kind::exclusive, acquire));
}

}  // namespace

template <class Result>
asio::awaitable<Result> take_turn(client zk, cohort_spec_ptr spec, if_contended when_contended,
                                  const acquire_options& how) {
    if (how.owner() && spec) return take_as<Result>(std::move(zk), std::move(spec), when_contended, *how.owner());
    return take<Result>(std::move(zk), std::move(spec), when_contended);
}

template asio::awaitable<lock_guard> take_turn(client, cohort_spec_ptr, if_contended, const acquire_options&);
template asio::awaitable<std::optional<lock_guard>> take_turn(client, cohort_spec_ptr, if_contended, const acquire_options&);

}  // namespace zkasio::lock_detail
