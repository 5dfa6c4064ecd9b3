#include <zkasio/locks/detail/contender.hpp>

#include <zkasio/locks/detail/rethrow.hpp>
#include <zkasio/path.hpp>

#include <asio/dispatch.hpp>
#include <asio/this_coro.hpp>

#include <type_traits>

namespace zkasio::lock_detail {

queue_claim::queue_claim(session on, acquire_request what) : on_(std::move(on)), who_(std::make_shared<contender>(on_, std::move(what))) {}

queue_claim::queue_claim(session on, acquire_request what, asio::any_io_executor from) : queue_claim(std::move(on), std::move(what)) {
    asio::dispatch(on_.get_executor(), [on = on_, who = who_, from = std::move(from)] {
        who->where = lock_queue::of(on, *who->asked.spec);
        who->where->enter(who, from);
    });
}

queue_claim::queue_claim(session on, acquire_request what, asio::any_io_executor from, std::string path)
    : queue_claim(std::move(on), std::move(what)) {
    asio::dispatch(on_.get_executor(), [on = on_, who = who_, from = std::move(from), path = std::move(path)] {
        who->where = lock_queue::of(on, *who->asked.spec);
        who->where->adopt(who, path, from);
    });
}

bool queue_claim::granted() {
    if (who_->failed) std::rethrow_exception(who_->failed);
    granted_ = who_->granted;
    if (granted_) paths_.assign(1, who_->path);
    return granted_;
}

void queue_claim::give_up() noexcept {
    if (std::exchange(given_up_, true)) return;
    try {
        if (who_->asked.observed) who_->asked.observed->end();
        if (granted_) {
            who_->hold->end(true);  // held() is false from here on
            gone_.emplace(on_.make_one_shot_event());
        }
        asio::dispatch(on_.get_executor(), [who = who_, gone = gone_] {
            if (gone) {
                who->leaving = std::make_unique<contender::departure>();
                who->leaving->gone = gone;
            }
            who->where->leave(who);
        });
    } catch (...) {
        // Out of memory: the node goes with the session.
    }
}

asio::awaitable<void> queue_claim::gone() {
    const contender_ptr who = who_;
    if (!gone_) co_return;
    try {
        co_await gone_->wait();
    } catch (...) {
        rethrow_as("release", who->path);
    }
    if (who->failed) std::rethrow_exception(who->failed);
}

asio::awaitable<std::shared_ptr<queue_claim>> queue_claim::downgrade(lock_spec_ptr as) {
    acquire_request what(std::move(as), lock_kind::shared);
    const std::shared_ptr<queue_claim> shared(new queue_claim(on_, std::move(what)));
    asio::dispatch(on_.get_executor(), [from = who_, to = shared->who_] {
        to->where = from->where;
        to->where->downgrade(from, to);
    });
    try {
        co_await shared->decided();
    } catch (...) {
        rethrow_as("downgrade", paths_.front());
    }
    if (shared->granted()) given_up_ = true;  // it has given way
    co_return shared;
}

void queue_claim::body_begins(asio::any_io_executor executor) {
    asio::dispatch(on_.get_executor(), [who = who_, executor = std::move(executor)] { who->bodies.begin(executor); });
}

void queue_claim::body_ends(asio::any_io_executor executor) noexcept {
    try {
        asio::dispatch(on_.get_executor(), [who = who_, executor = std::move(executor)] { who->bodies.end(executor); });
    } catch (...) {
        // Out of memory: nobody will ever be on that executor again.
    }
}

namespace {

using claim_ptr = std::shared_ptr<lock_claim>;
using maybe_guard = std::optional<lock_guard>;

template <class Result>
Result as(claim_ptr claim) {
    if constexpr (std::is_same_v<Result, maybe_guard>)
        return to_guard(std::move(claim));
    else
        return Result(std::move(claim));
}

template <class Result>
asio::awaitable<Result> contend_as(client zk, acquire_request what, lock_owner owner) {
    const std::string key = zk.options().servers() + ' ' + what.spec->names.exclusive() + ' ' + what.spec->directory;
    const std::string& path = what.spec->directory;
    std::function<asio::awaitable<claim_ptr>()> anew = [&] { return contend<claim_ptr>(zk, what); };
    if (what.when_contended == if_contended::give_up) co_return as<Result>(co_await owner.try_acquire(zk, key, path, what.kind, anew));
    co_return as<Result>(co_await owner.acquire(zk, key, path, what.kind, anew));
}

// Nothing of a lock that was moved from.
std::string directory_of(const acquire_request& what) { return what.spec ? what.spec->directory : std::string(); }

// Whoever waits keeps the frame of contend(): what is needed only before and after has functions of its own.

std::shared_ptr<queue_claim> place_now(const client& zk, const acquire_request& what, const asio::any_io_executor& from) {
    acquire_request asked = what;
    if (asked.observed) asked.observed = std::make_shared<observation>(what.observed->tell);  // that of an earlier attempt is over
    return std::make_shared<queue_claim>(zk.session_now(), std::move(asked), from);
}

asio::awaitable<void> connected(const client& zk, const acquire_request& what) { return zk.connected("acquire", directory_of(what)); }

// Its frame is small, too: Asio gives the memory to whoever waits next.
asio::awaitable<std::shared_ptr<queue_claim>> take_place(const client& zk, const acquire_request& what) {
    if (zk.state() != session_state::connected) co_await connected(zk, what);
    const asio::any_io_executor from = co_await asio::this_coro::executor;
    co_return place_now(zk, what, from);
}

template <class Result>
Result outcome(const std::shared_ptr<queue_claim>& claim) {
    return as<Result>(claim->granted() ? claim : nullptr);
}

}  // namespace

template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what) {
    for (;;) {
        const std::shared_ptr<queue_claim> claim = co_await take_place(zk, what);
        try {
            co_await claim->decided();
        } catch (...) {
            rethrow_as("acquire", what.spec->directory);
        }
        bool over = !claim->granted() || claim->hold().held();
        if (!over) over = co_await covered(claim);
        if (over) co_return outcome<Result>(claim);
    }
}

template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what, acquire_options how) {
    if (how.on_position()) what.observed = std::make_shared<observation>(how.on_position());
    if (how.owner() && what.spec) return contend_as<Result>(std::move(zk), std::move(what), *how.owner());
    return contend<Result>(std::move(zk), std::move(what));
}

template asio::awaitable<claim_ptr> contend(client, acquire_request, acquire_options);
template asio::awaitable<lock_guard> contend(client, acquire_request, acquire_options);
template asio::awaitable<maybe_guard> contend(client, acquire_request, acquire_options);

std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim) {
    maybe_guard guard;
    if (claim) guard.emplace(std::move(claim));
    return guard;
}

asio::awaitable<bool> covered(std::shared_ptr<lock_claim> claim) {
    if (claim->hold().held()) co_return true;
    try {
        co_await claim->hold().confirmed();
    } catch (const error& e) {
        if (e.code() != errc::lock_lost || claim->on().over()) throw;
        co_return false;
    }
    co_return true;
}

asio::awaitable<lock_guard> always(asio::awaitable<std::optional<lock_guard>> attempt) {
    std::optional<lock_guard> guard = co_await std::move(attempt);
    co_return std::move(*guard);
}

void check_directory(std::string_view recipe, const std::string& path) {
    std::string problem = path_problem(path);
    if (problem.empty() && path == "/") problem = "a lock needs a directory of its own";
    if (!problem.empty()) throw error(errc::invalid_path, recipe, path, problem);
}

}  // namespace zkasio::lock_detail
