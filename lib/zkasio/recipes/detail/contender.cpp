#include <zkasio/recipes/detail/contender.hpp>

#include <zkasio/path.hpp>

#include <asio/dispatch.hpp>
#include <asio/this_coro.hpp>

namespace zkasio::recipes::detail {

queue_claim::queue_claim(session on, std::shared_ptr<found> where, wish what)
    : on_(std::move(on)), where_(std::move(where)), who_(std::make_shared<contender>(on_, std::move(what))) {}

queue_claim::queue_claim(session on, std::string directory, queue_names names, wish what)
    : queue_claim(std::move(on), std::make_shared<found>(), std::move(what)) {
    where_->directory = std::move(directory);
    asio::dispatch(on_.get_executor(), [where = where_, on = on_, who = who_, names = std::move(names)] {
        where->queue = lock_queue::of(on, where->directory, names);
        where->queue->enter(who);
    });
}

queue_claim::queue_claim(session on, std::string directory, queue_names names, wish what, std::string path)
    : queue_claim(std::move(on), std::make_shared<found>(), std::move(what)) {
    where_->directory = std::move(directory);
    asio::dispatch(on_.get_executor(), [where = where_, on = on_, who = who_, names = std::move(names), path = std::move(path)] {
        where->queue = lock_queue::of(on, where->directory, names);
        where->queue->adopt(who, path);
    });
}

asio::awaitable<bool> queue_claim::decided() {
    co_await who_->decided.wait();
    if (who_->failed) std::rethrow_exception(who_->failed);
    granted_ = who_->granted;
    if (granted_) paths_.push_back(who_->path);
    co_return granted_;
}

void queue_claim::give_up() noexcept {
    if (std::exchange(given_up_, true)) return;
    if (granted_) who_->hold->end(true);  // held() is false from here on
    try {
        asio::dispatch(on_.get_executor(), [where = where_, who = who_] { where->queue->leave(who); });
    } catch (...) {
        // Out of memory: the node goes with the session.
    }
}

asio::awaitable<void> queue_claim::gone() {
    const contender_ptr who = who_;
    co_await who->gone.wait();
    if (who->removal_failed) std::rethrow_exception(who->removal_failed);
}

asio::awaitable<std::shared_ptr<queue_claim>> queue_claim::downgrade(std::string data, acl entries) {
    wish what;
    what.kind = lock_kind::shared;
    what.data = std::move(data);
    what.acl = std::move(entries);
    const std::shared_ptr<queue_claim> shared(new queue_claim(on_, where_, std::move(what)));
    asio::dispatch(on_.get_executor(), [where = where_, from = who_, to = shared->who_] { where->queue->downgrade(from, to); });
    co_await shared->decided();
    given_up_ = true;  // it has given way
    co_return shared;
}

void queue_claim::body_runs_on(asio::any_io_executor executor) {
    asio::dispatch(on_.get_executor(), [who = who_, executor = std::move(executor)] { who->body_on = executor; });
}

asio::awaitable<std::shared_ptr<queue_claim>> contend(client zk, std::string directory, queue_names names, wish what) {
    const session on = co_await zk.current_session();
    what.from = co_await asio::this_coro::executor;
    for (;;) {  // a new place, whenever somebody has taken ours away
        wish again = what;
        const auto claim = std::make_shared<queue_claim>(on, directory, names, std::move(again));
        const bool granted = co_await claim->decided();
        if (!granted) co_return nullptr;
        std::error_code lost;
        if (!claim->hold().held()) {
            try {
                co_await claim->hold().confirmed();
            } catch (const error& e) {
                if (e.code() != errc::lock_lost || on.over()) throw;
                lost = e.code();
            }
        }
        if (!lost) co_return claim;
    }
}

asio::awaitable<std::shared_ptr<lock_claim>> contend_as(client zk, acquire_options how, std::string directory, queue_names names, wish what) {
    if (!how.owner()) co_return co_await contend(zk, std::move(directory), std::move(names), std::move(what));
    const std::string key = zk.options().servers() + ' ' + names.exclusive() + ' ' + directory;
    const lock_kind kind = what.kind;
    std::function<asio::awaitable<std::shared_ptr<lock_claim>>()> anew = [&]() -> asio::awaitable<std::shared_ptr<lock_claim>> {
        co_return co_await contend(zk, directory, names, what);
    };
    if (what.how_long == patience::first_or_nothing) co_return co_await how.owner()->try_acquire(zk, key, kind, anew);
    co_return co_await how.owner()->acquire(zk, key, kind, anew);
}

wish make_wish(lock_kind kind, patience how_long, std::string data, acl entries, const acquire_options& how) {
    wish what;
    what.kind = kind;
    what.how_long = how_long;
    what.data = std::move(data);
    what.acl = std::move(entries);
    what.observer = how.on_position();
    return what;
}

std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim) {
    std::optional<lock_guard> guard;
    if (claim) guard.emplace(std::move(claim));
    return guard;
}

void check_directory(std::string_view recipe, const std::string& path) {
    std::string problem = path_problem(path);
    if (problem.empty() && path == "/") problem = "a lock needs a directory of its own";
    if (!problem.empty()) throw error(errc::invalid_path, recipe, path, problem);
}

}  // namespace zkasio::recipes::detail
