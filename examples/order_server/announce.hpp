#pragma once

#include "lock_waits.hpp"
#include "open_requests.hpp"
#include "options.hpp"
#include "payments.hpp"

#include <zkasio/client.hpp>

#include <asio/awaitable.hpp>

#include <atomic>

namespace order_server {

struct announced_service {
    zkasio::client zk;
    const options& how;
    const payment_counts& payments;
    const open_requests& requests;
    lock_waits& waits;
    std::atomic<bool>& announced;  ///< is set when others can find this instance
};

/// Tells the others where this instance is, and each second what it has done: the page of each instance shows all.
///
/// *Completes* by failing only. *Cancellation*: withdraws.
asio::awaitable<void> keep_announced(announced_service what);

}  // namespace order_server
