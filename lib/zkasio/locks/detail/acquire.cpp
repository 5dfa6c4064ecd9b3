#include <zkasio/locks/detail/acquire.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/queue_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/this_coro.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace zkasio::lock_detail {

void refuse_owner(const acquire_options& how, const std::string& path, std::string_view why) {
    if (how.owner()) throw error(errc::invalid_argument, "acquire", path, why);
}

std::exception_ptr refusal_without_id(const lock_spec_ptr& lock, const std::string& path) {
    if (!lock || lock->names.has_id()) return nullptr;
    const std::string markers = lock->names.markers();
    return std::make_exception_ptr(error(errc::invalid_argument, "acquire", path,
                                         "name_scheme::plain(" + markers +
                                             ") looks and does not contend, since its names have no id: use "
                                             "name_scheme::custom(\"\", " + markers + ')'));
}

asio::awaitable<bool> wait_until_covered(std::shared_ptr<lock_claim> claim) {
    if (claim->hold().held()) co_return true;
    // For messages: a queue's directory. The other kinds of locks put their own paths there.
    const std::string lock(parent_path(claim->paths().front()));
    try {
        co_await claim->hold().confirmed();
        co_return true;
    } catch (const error& e) {
        if (e.code() != errc::lock_lost) throw error(e.code(), "acquire", lock, e.hint());
    }
    if (!claim->on().over()) co_return false;
    const std::error_code why = co_await claim->on().ended();
    throw error(why, "acquire", lock);
}

asio::awaitable<void> acquire_in_session(session on, std::string path,
                                         std::function<asio::awaitable<void>()> acquire) {
    std::function<asio::awaitable<void>()> attempt = [&]() -> asio::awaitable<void> {
        if (on.over()) {
            const std::error_code why = co_await on.ended();
            throw error(why, "acquire", path);
        }
        co_await acquire();
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), attempt);
}

std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim, const client& zk) {
    std::optional<lock_guard> guard;
    if (claim) guard.emplace(std::move(claim), zk.keep_open());
    return guard;
}

asio::awaitable<std::optional<lock_guard>> errors_as_acquire(asio::awaitable<std::optional<lock_guard>> attempt,
                                                             std::string path) {
    try {
        co_return co_await std::move(attempt);
    } catch (...) {
        rethrow_without_trace("acquire", path);
    }
}

namespace {

using claim_ptr = std::shared_ptr<lock_claim>;
using maybe_guard = std::optional<lock_guard>;

template <class Result>
Result as(const client& zk, claim_ptr claim) {
    if constexpr (std::is_same_v<Result, maybe_guard>)
        return to_guard(std::move(claim), zk);
    else if constexpr (std::is_same_v<Result, lock_guard>)
        return lock_guard(std::move(claim), zk.keep_open());
    else
        return claim;
}

template <class Result>
asio::awaitable<Result> contend_as(client zk, acquire_request what, lock_owner owner) {
    const std::string key = zk.options().servers() + ' ' + what.spec->names.exclusive() + ' ' + what.spec->directory;
    const std::string& path = what.spec->directory;
    std::function<asio::awaitable<claim_ptr>()> acquire = [&] { return contend<claim_ptr>(zk, what); };
    if (what.when_contended == if_contended::give_up)
        co_return as<Result>(zk, co_await owner.try_acquire(zk, key, path, what.kind, acquire));
    co_return as<Result>(zk, co_await owner.acquire(zk, key, path, what.kind, acquire));
}

// Empty if the lock was moved from.
std::string directory_of(const acquire_request& what) { return what.spec ? what.spec->directory : std::string(); }

// A waiting acquire keeps the frame of contend() in memory. So code that runs only before or after the wait has its own
// functions, whose frames are gone during the wait.

std::shared_ptr<queue_claim> place_now(const client& zk, const acquire_request& what, const queue_claim* lost,
                                       const asio::any_io_executor& from) {
    acquire_request asked = what;
    if (asked.observed)
        asked.observed = std::make_shared<observation>(what.observed->tell);  // an earlier attempt's has ended
    return std::make_shared<queue_claim>(lost ? lost->on() : zk.session_now(), std::move(asked), from);
}

asio::awaitable<void> connected(const client& zk, const acquire_request& what) {
    return toolbox(zk).connected("acquire", directory_of(what));
}

// The frame of take_place() has to be small, too: Asio gives its memory to the next coroutine, which may wait long.
// @param lost the claim of an earlier attempt; null: this is the first. A later attempt stays in the same session, and
// needs no connection to begin: the create waits for one as long as the session lives.
asio::awaitable<std::shared_ptr<queue_claim>> take_place(const client& zk, const acquire_request& what,
                                                         const queue_claim* lost) {
    if (!lost && zk.state() != session_state::connected) co_await connected(zk, what);
    const asio::any_io_executor from = co_await asio::this_coro::executor;
    co_return place_now(zk, what, lost, from);
}

template <class Result>
Result outcome(const client& zk, const std::shared_ptr<queue_claim>& claim) {
    return as<Result>(zk, claim->granted() ? claim : nullptr);
}

}  // namespace

template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what) {
    std::shared_ptr<queue_claim> claim;
    for (;;) {
        claim = co_await take_place(zk, what, claim.get());
        try {
            co_await claim->decided();
        } catch (...) {
            rethrow_as("acquire", what.spec->directory);
        }
        bool over = !claim->granted() || claim->hold().held();
        if (!over) over = co_await wait_until_covered(claim);
        if (over) co_return outcome<Result>(zk, claim);
        claim->give_up();
    }
}

template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what, acquire_options how) {
    if (how.on_position()) what.observed = std::make_shared<observation>(how.on_position());
    what.spec = with_data(std::move(what.spec), how.data());
    if (how.owner() && what.spec) return contend_as<Result>(std::move(zk), std::move(what), *how.owner());
    return contend<Result>(std::move(zk), std::move(what));
}

template asio::awaitable<claim_ptr> contend(client, acquire_request, acquire_options);
template asio::awaitable<lock_guard> contend(client, acquire_request, acquire_options);
template asio::awaitable<maybe_guard> contend(client, acquire_request, acquire_options);

}  // namespace zkasio::lock_detail
