// Implements work_queue::consume().

#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/error.hpp>
#include <zkasio/queues/detail/queue_state.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <set>
#include <utility>

namespace zkasio::queue_detail {
namespace {

using consumer_body = std::function<asio::awaitable<void>(delivery&)>;

struct consumer {
    consumer_body body;
    state_ptr from;
    consume_options how;
    std::multiset<boot_clock::time_point> rests;  // the ends of the pauses of items whose bodies have failed
};

std::string text_of(const std::exception_ptr& e) {
    try {
        std::rethrow_exception(e);
    } catch (const std::exception& x) {
        return x.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

// Runs the body for an item. Returns what the body has thrown.
asio::awaitable<std::exception_ptr> run_body(const consumer& c, delivery& d) {
    std::function<asio::awaitable<void>()> work = [&] { return c.body(d); };
    try {
        co_await d.run(work);
    } catch (...) {
        co_return std::current_exception();
    }
    co_return nullptr;
}

// Whether an error ends no more than one delivery: the claim was lost, the body has ended the delivery, or the session
// or the connection is over. Then some consumer is given the item again, or the item was done.
bool ends_one_delivery(const error& e) {
    return e.code() == errc::lock_lost || e.code() == errc::lock_released || e.code() == errc::session_expired ||
           e.code() == condition::retryable;
}

// After a cancellation of consume().
[[noreturn]] void throw_cancelled(const consumer& c, const std::exception_ptr& failed) {
    try {
        if (failed) std::rethrow_exception(failed);
    } catch (const error& e) {
        if (!ends_one_delivery(e)) throw;
    }
    throw error(asio::error::operation_aborted, "consume", c.from->what->path, {}, leaves_outcome_unknown(failed));
}

// Gives the item back with a pause. Of more items that rest than keep their claims, the others are given to other
// consumers at once, whose bodies may fail as well: then this consumer waits after the first failure of an item, so
// that an outage of what the bodies need does not spend the deliveries of all items. It does not wait after later
// failures: items that always fail would hold up the others.
asio::awaitable<void> rest(consumer& c, delivery& d) {
    const std::chrono::milliseconds pause = c.how.pause_after(d.attempt());
    co_await d.again(pause);
    const boot_clock::time_point now = boot_clock::now();
    c.rests.erase(c.rests.begin(), c.rests.upper_bound(now));
    c.rests.insert(now + pause);
    if (d.attempt() > 1 || c.rests.size() <= claimer::most_resting) co_return;
    asio::steady_timer timer(co_await asio::this_coro::executor, c.how.pause_after(1));
    try {
        co_await timer.async_wait(asio::use_awaitable);
    } catch (...) {
        rethrow_as("consume", c.from->what->path);
    }
}

// Ends the delivery by what the body has thrown: done, again after a pause, or rejected.
asio::awaitable<void> end(consumer& c, delivery& d, std::exception_ptr failed) {
    const int most = c.from->what->options.most_deliveries();
    const bool is_last = most > 0 && d.attempt() >= most;
    bool cannot_die = false;  // the item is too large for the dead items, or the servers refuse these to this client
    try {
        if (!failed)
            co_await d.done();
        else if (is_last)
            co_await d.reject(text_of(failed));
        else
            co_await rest(c, d);
    } catch (const error& e) {
        cannot_die = failed && is_last && (e.code() == errc::too_large || is_lasting_refusal(e));
        if (!cannot_die && !ends_one_delivery(e)) throw;
    }
    if (cannot_die) co_await rest(c, d);
}

// @param untold whether the body that ran last has left the outcome of a write unknown, and the caller was not told.
asio::awaitable<void> work_for_ever(consumer& c, bool& untold) {
    used_session in(c.from->zk);
    // Consumers live on: an error with error::hung_up() is repeated, too.
    auto receive = [&]() -> asio::awaitable<delivery> {
        try {
            co_return co_await receive_item(c.from, "consume", &in);
        } catch (const error& e) {
            if (!e.hung_up()) throw;
            throw error(e.code(), e.operation(), e.path(), e.hint(), e.outcome_unknown());
        }
    };
    for (;;) {
        delivery d = co_await retry_until_certain(toolbox(c.from->zk).make_back_off(), receive);
        untold = false;
        const std::exception_ptr failed = co_await run_body(c, d);
        const asio::cancellation_state cancelled = co_await asio::this_coro::cancellation_state;
        if (cancelled.cancelled() != asio::cancellation_type::none) throw_cancelled(c, failed);
        untold = leaves_outcome_unknown(failed);
        co_await errors_as("consume", c.from->what->path, end(c, d, failed));
    }
}

asio::awaitable<void> work_on(consumer& c) {
    bool untold = false;
    try {
        co_await work_for_ever(c, untold);
    } catch (const std::system_error&) {
        if (!untold) throw;
        rethrow_with_write_of_body("consume", c.from->what->path);
    }
}

}  // namespace

asio::awaitable<void> run_consumers(consumer_body body, state_ptr from, consume_options how) {
    if (!body)
        throw error(errc::invalid_argument, "consume", queue_of(from, "consume")->what->path, "the body is empty");
    queue_of(from, "consume");
    consumer c{std::move(body), std::move(from), how, {}};
    auto start = [&](task_scope& tasks) -> asio::awaitable<void> {
        for (std::size_t i = 0; i < c.how.parallel(); ++i) tasks.spawn(work_on(c));
        co_return;
    };
    co_await with_task_scope(start);
}

}  // namespace zkasio::queue_detail
