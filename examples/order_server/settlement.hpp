#pragma once

#include "blocking_pool.hpp"
#include "order_store.hpp"

#include <zkasio/client.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <string>

namespace order_server {

struct settlement_job {
    zkasio::client zk;
    std::string election, book;  ///< where the election is, and the lock of the whole order book
    std::string instance;
    order_store& store;
    blocking_pool& pool;
    std::chrono::milliseconds every;
};

/// Settles what has been paid, again and again, in that one of the instances that leads. It writes in small steps, and
/// has the order book for itself meanwhile: whoever reads the book never sees half of a settlement.
///
/// *Completes* by failing only. *Cancellation*: resigns.
asio::awaitable<void> run_settlement(settlement_job job);

}  // namespace order_server
