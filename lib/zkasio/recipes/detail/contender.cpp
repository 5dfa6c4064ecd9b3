#include <zkasio/recipes/detail/contender.hpp>

#include <zkasio/path.hpp>

#include <asio/dispatch.hpp>
#include <asio/this_coro.hpp>

namespace zkasio::recipes::detail {

queue_claim::queue_claim(session on, wish what, std::shared_ptr<found> where)
    : on_(std::move(on)), where_(std::move(where)), who_(std::make_shared<contender>(on_, std::move(what))) {}

queue_claim::queue_claim(session on, wish what, asio::any_io_executor from)
    : queue_claim(std::move(on), std::move(what), std::make_shared<found>()) {
    asio::dispatch(on_.get_executor(), [where = where_, on = on_, who = who_, from = std::move(from)] {
        *where = lock_queue::of(on, *who->asked.spec);
        who->asked.spec->last_queue = *where;
        (*where)->enter(who, from);
    });
}

queue_claim::queue_claim(session on, wish what, std::string path)
    : queue_claim(std::move(on), std::move(what), std::make_shared<found>()) {
    asio::dispatch(on_.get_executor(), [where = where_, on = on_, who = who_, path = std::move(path)] {
        *where = lock_queue::of(on, *who->asked.spec);
        (*where)->adopt(who, path);
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
        if (granted_) {
            who_->hold->end(true);  // held() is false from here on
            gone_.emplace(on_.make_one_shot());
        }
        asio::dispatch(on_.get_executor(), [where = where_, who = who_, gone = gone_] {
            if (gone) who->gone = gone;
            (*where)->leave(who);
        });
    } catch (...) {
        // Out of memory: the node goes with the session.
    }
}

asio::awaitable<void> queue_claim::gone() {
    const contender_ptr who = who_;
    if (!gone_) co_return;
    co_await gone_->wait();
    if (who->removal_failed) std::rethrow_exception(who->removal_failed);
}

asio::awaitable<std::shared_ptr<queue_claim>> queue_claim::downgrade() {
    wish what(who_->asked.spec, lock_kind::shared);
    const std::shared_ptr<queue_claim> shared(new queue_claim(on_, std::move(what), where_));
    asio::dispatch(on_.get_executor(), [where = where_, from = who_, to = shared->who_] { (*where)->downgrade(from, to); });
    co_await shared->decided();
    if (shared->granted()) given_up_ = true;  // it has given way
    co_return shared;
}

void queue_claim::body_runs_on(asio::any_io_executor executor) {
    asio::dispatch(on_.get_executor(), [who = who_, executor = std::move(executor)] {
        who->body_on = executor ? std::make_unique<asio::any_io_executor>(executor) : nullptr;
    });
}

asio::awaitable<std::shared_ptr<lock_claim>> contend(client zk, wish what) {
    if (zk.state() != session_state::connected) co_await zk.connected();
    for (;;) {  // a new place, whenever somebody has taken ours away
        wish again = what;
        const auto claim = std::make_shared<queue_claim>(zk.session_now(), std::move(again), co_await asio::this_coro::executor);
        co_await claim->decided();
        if (!claim->granted()) co_return nullptr;
        if (claim->hold().held()) co_return claim;
        std::error_code lost;
        try {
            co_await claim->hold().confirmed();
        } catch (const error& e) {
            if (e.code() != errc::lock_lost || claim->on().over()) throw;
            lost = e.code();
        }
        if (!lost) co_return claim;
    }
}

namespace {

asio::awaitable<std::shared_ptr<lock_claim>> contend_as(client zk, wish what, lock_owner owner) {
    const std::string key = zk.options().servers() + ' ' + what.spec->names.exclusive() + ' ' + what.spec->directory;
    std::function<asio::awaitable<std::shared_ptr<lock_claim>>()> anew = [&] { return contend(zk, what); };
    co_return co_await owner.acquire(zk, key, what.kind, anew);
}

}  // namespace

asio::awaitable<std::shared_ptr<lock_claim>> contend(client zk, wish what, acquire_options how) {
    if (how.on_position()) what.observer = std::make_shared<const position_observer>(how.on_position());
    if (how.owner()) return contend_as(std::move(zk), std::move(what), *how.owner());
    return contend(std::move(zk), std::move(what));
}

std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim) {
    std::optional<lock_guard> guard;
    if (claim) guard.emplace(std::move(claim));
    return guard;
}

asio::awaitable<lock_guard> to_guard_of(asio::awaitable<std::shared_ptr<lock_claim>> contending) {
    co_return lock_guard(co_await std::move(contending));
}

asio::awaitable<std::optional<lock_guard>> to_maybe_guard(asio::awaitable<std::shared_ptr<lock_claim>> contending) {
    co_return to_guard(co_await std::move(contending));
}

void check_directory(std::string_view recipe, const std::string& path) {
    std::string problem = path_problem(path);
    if (problem.empty() && path == "/") problem = "a lock needs a directory of its own";
    if (!problem.empty()) throw error(errc::invalid_path, recipe, path, problem);
}

}  // namespace zkasio::recipes::detail
