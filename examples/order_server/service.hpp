#pragma once

#include "blocking_pool.hpp"
#include "http.hpp"
#include "lock_waits.hpp"
#include "metrics.hpp"
#include "open_requests.hpp"
#include "options.hpp"
#include "order_store.hpp"
#include "payments.hpp"
#include "routes.hpp"

#include <zkasio/client.hpp>
#include <zkasio/config/config_value.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

#include <atomic>
#include <csignal>
#include <memory>

namespace order_server {

/// One instance of the order server, with all its parts. Destroyed before the io_context, and after run().
class service {
public:
    service(asio::io_context& io, options how);

    /// *Completes when* the process was told to end (SIGINT, SIGTERM), all requests have ended, and ZooKeeper has been
    /// told. *Fails with* what has kept it from starting.
    asio::awaitable<void> run();

private:
    asio::awaitable<void> requests_to_end();
    asio::awaitable<void> announce();
    std::unique_ptr<answering_router> make_router();

    asio::io_context& io_;
    // To the very end: the second signal of a Ctrl-C that reaches all of a group changes nothing.
    asio::signal_set signals_{io_, SIGINT, SIGTERM};
    const options how_;
    const std::shared_ptr<lock_waits> waits_ = std::make_shared<lock_waits>();
    zkasio::client zk_;
    zkasio::config_value<price_list> prices_;
    order_store store_;
    blocking_pool pool_;
    payments till_;
    metrics counters_;
    const std::shared_ptr<open_requests> requests_;
    std::atomic<bool> announced_{false};
    handlers handlers_;
    http_server server_;  // last: it is the first to go
};

}  // namespace order_server
