#include "settlement.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/shared_mutex.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <cstdint>
#include <iostream>
#include <optional>
#include <utility>

namespace order_server {

namespace {

constexpr std::int64_t orders_in_a_step = 200;

// False: another instance leads by now, or the store cannot be written at the moment; then others may try.
asio::awaitable<bool> settle_all(const settlement_job& job, std::int64_t token) {
    zkasio::shared_mutex_options me;
    me.data(job.instance + "/settlement");
    const zkasio::shared_mutex book(job.zk, job.book, me);
    const zkasio::lock_guard alone = co_await book.acquire();
    auto step = [&job, token] { return job.store.settle(token, orders_in_a_step); };
    std::optional<int> settled;
    try {
        do settled = co_await job.pool.run(step);
        while (settled == orders_in_a_step);
    } catch (const store_error& e) {
        std::cerr << job.instance << ": cannot settle: " << e.what() << "\n";
        settled.reset();
    }
    co_return settled.has_value();
}

}  // namespace

asio::awaitable<void> run_settlement(settlement_job job) {
    zkasio::leader_election_options me;
    me.id(job.instance);
    const zkasio::leader_election election(job.zk, job.election, me);
    auto term = [&](zkasio::leadership& leader) -> asio::awaitable<void> {
        asio::steady_timer pause(co_await asio::this_coro::executor);
        for (bool leads = true; leads;) {
            pause.expires_after(job.every);
            co_await pause.async_wait(asio::use_awaitable);
            leads = co_await settle_all(job, leader.token().value());
        }
    };
    zkasio::lead_options how;
    how.requeue();
    co_await election.lead(term, how);
}

}  // namespace order_server
