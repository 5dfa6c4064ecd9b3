#include "payments.hpp"

#include <zkasio/locks/mutex.hpp>

#include <asio/cancellation_state.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <optional>
#include <utility>

namespace order_server {

namespace {

using found = order_store::reading::result;

// Stands for a call of a payment provider: it reserves the amount, and takes it when the payment has been written. A
// reservation that is not taken lapses.
asio::awaitable<void> ask_bank(std::chrono::milliseconds time) {
    asio::steady_timer answer(co_await asio::this_coro::executor, time);
    co_await answer.async_wait(asio::use_awaitable);
}

}  // namespace

std::string_view to_string(payment_outcome o) noexcept {
    switch (o) {
        case payment_outcome::paid: return "paid";
        case payment_outcome::already_paid: return "already paid";
        case payment_outcome::no_such_order: return "no such order";
        case payment_outcome::no_price: return "no price";
        case payment_outcome::busy: return "busy";
        case payment_outcome::fenced: return "fenced off";
    }
    return "?";
}

// [pay]
asio::awaitable<payment> payments::pay(std::string id, std::string who, std::chrono::milliseconds deadline) {
    zkasio::mutex_options options;
    options.data(std::move(who));
    const zkasio::mutex lock(parts_.zk, parts_.locks + "/" + id, options);
    zkasio::acquire_options how;
    how.survive_expiry();  // within the deadline
    std::optional<zkasio::lock_guard> guard = co_await lock.try_acquire_for(deadline, how);
    if (!guard) co_return payment();
    // What has been asked of the bank is brought to its end, whether or not anybody waits for the answer, and whether
    // or not the lock is still ours: the store finds out.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    payment p = co_await pay_locked(std::move(id), guard->token().value());
    if (p.outcome == payment_outcome::paid) ++counts_.paid;
    if (p.outcome == payment_outcome::fenced) ++counts_.fenced;
    co_return p;
}  // here the lock is released; nobody needs to wait for that
// [/pay]

asio::awaitable<payment> payments::pay_locked(std::string id, std::int64_t token) {
    payment p;
    auto begin = [&] { return parts_.store.begin_payment(id, token); };
    order_store::reading read = co_await parts_.pool.run(begin);
    p.what = std::move(read.what);
    p.outcome = payment_outcome::no_such_order;
    if (read.is == found::no_such_order) co_return p;
    p.outcome = payment_outcome::fenced;
    if (read.is == found::fenced) co_return p;
    p.outcome = payment_outcome::already_paid;
    if (p.what.state != order_state::open) co_return p;
    p.outcome = payment_outcome::no_price;
    const std::optional<cents> amount = amount_of(p.what, *parts_.prices.value());
    if (!amount) co_return p;

    co_await ask_bank(parts_.bank_time);

    auto finish = [&] { return parts_.store.finish_payment(id, token, parts_.instance, *amount); };
    const bool written = co_await parts_.pool.run(finish);
    p.outcome = payment_outcome::fenced;
    if (!written) co_return p;
    p.outcome = payment_outcome::paid;
    p.what.state = order_state::paid;
    p.what.amount = *amount;
    p.what.paid_by = parts_.instance;
    p.what.token = token;
    co_return p;
}

}  // namespace order_server
