#include <zkasio/locks/detail/contend.hpp>

#include <zkasio/locks/detail/finish_acquire.hpp>
#include <zkasio/locks/detail/queue_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/this_coro.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace zkasio::lock_detail {
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
