#pragma once

#include "open_requests.hpp"
#include "reply.hpp"

#include <restinio/all.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

namespace order_server {

/// How RESTinio is used here: its connections tell open_requests of their end, and an express_router finds the handler.
struct http_traits : restinio::default_traits_t {
    using connection_state_listener_t = open_requests;
    using request_handler_t = restinio::router::express_router_t<>;
};
using http_server = restinio::http_server_t<http_traits>;
using http_router = restinio::router::express_router_t<>;

/// Sends the answer. Where the client has gone, RESTinio drops it.
restinio::request_handling_status_t send(const restinio::request_handle_t& to, const reply& r);

/// Answers with what `work` returns, or with what has become of it. *Cancellation* is passed on.
asio::awaitable<void> answer(restinio::request_handle_t to, asio::awaitable<reply> work);


}  // namespace order_server
