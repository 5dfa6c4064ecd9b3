#pragma once

#include "http.hpp"
#include "metrics.hpp"
#include "open_requests.hpp"
#include "options.hpp"
#include "order_store.hpp"
#include "payments.hpp"

#include <zkasio/client.hpp>
#include <zkasio/config/config_value.hpp>

#include <functional>
#include <memory>

namespace order_server {

/// What the handlers work with. Outlives the requests.
struct handlers {
    const options& how;
    zkasio::client zk;
    const zkasio::config_value<price_list>& prices;
    order_store& store;
    blocking_pool& pool;
    payments& till;
    metrics& counters;
    open_requests& requests;
    std::function<bool()> ready;
};

/// /orders, /prices, /healthz, /readyz, /metrics
void add_routes(http_router& to, handlers& with);

/// Answers with what the coroutine returns; the end of the connection cancels it.
void start(handlers& with, const std::shared_ptr<open_request>& as, restinio::request_handle_t to,
           asio::awaitable<reply> work);

}  // namespace order_server
