#pragma once

#include "blocking_pool.hpp"
#include "order.hpp"
#include "order_store.hpp"

#include <zkasio/client.hpp>
#include <zkasio/config/config_value.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace order_server {

enum class payment_outcome {
    paid,
    already_paid,   ///< by an earlier request
    no_such_order,
    no_price,       ///< for its item, at the moment
    busy,           ///< others had the order's lock until the deadline
    fenced,         ///< the lock was lost meanwhile, and somebody else deals with the order. Nothing was paid
};
std::string_view to_string(payment_outcome o) noexcept;

struct payment {
    payment_outcome outcome = payment_outcome::busy;
    order what;  ///< as it is now, where there is one
};

/// How payments have ended since this process has begun, for the page.
struct payment_counts {
    std::atomic<std::uint64_t> paid{0}, fenced{0};
};

/// Takes payments for orders, each under the lock of its order.
class payments {
public:
    struct parts {
        zkasio::client zk;
        std::string locks;  ///< the directory of all locks
        std::string instance;
        const zkasio::config_value<price_list>& prices;
        order_store& store;
        blocking_pool& pool;
        std::chrono::milliseconds bank_time;
    };
    explicit payments(parts p) : parts_(std::move(p)) {}

    /// @param who is written into the node in the queue, for the page. @param deadline for the wait.
    /// *Cancellation* until the lock is ours: gives up the place in the queue. Afterwards: does nothing, since the bank
    /// may have been told by then.
    asio::awaitable<payment> pay(std::string id, std::string who, std::chrono::milliseconds deadline);

    const payment_counts& counts() const noexcept { return counts_; }

private:
    asio::awaitable<payment> pay_locked(std::string id, std::int64_t token);

    const parts parts_;
    payment_counts counts_;
};

}  // namespace order_server
