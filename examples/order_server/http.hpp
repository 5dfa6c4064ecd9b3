#pragma once

#include "open_requests.hpp"
#include "reply.hpp"

#include <restinio/all.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace order_server {

using http_router = restinio::router::express_router_t<>;

/// Finds the handler, and answers where that throws: RESTinio would close the connection without a word.
class answering_router {
public:
    explicit answering_router(std::unique_ptr<http_router> router) : router_(std::move(router)) {}
    restinio::request_handling_status_t operator()(restinio::request_handle_t r) const;

private:
    std::unique_ptr<http_router> router_;
};

/// Closes connections at once that are too many. (RESTinio's own limiter lets them wait; but its connections must not
/// outlive the server then, and they do while a client keeps them open.)
class connection_limit {
public:
    connection_limit(std::shared_ptr<const open_requests> all, std::size_t most) : all_(std::move(all)), most_(most) {}

    restinio::ip_blocker::inspection_result_t inspect(const restinio::ip_blocker::incoming_info_t&) const noexcept {
        return all_->connections() < most_ ? restinio::ip_blocker::allow() : restinio::ip_blocker::deny();
    }

private:
    std::shared_ptr<const open_requests> all_;
    std::size_t most_;
};

/// How RESTinio is used here: its connections tell open_requests of their end, there is a limit to their number, and
/// answering_router answers.
struct http_traits : restinio::default_traits_t {
    using connection_state_listener_t = open_requests;
    using ip_blocker_t = connection_limit;
    using request_handler_t = answering_router;
};
using http_server = restinio::http_server_t<http_traits>;

/// The longest body that is looked at; others are answered with 413.
constexpr std::size_t longest_body = 16 * 1024;

/// What RESTinio reads into memory of one request. Where there is more it closes the connection: it has no answer then,
/// so these limits are somewhat above what handlers take.
restinio::incoming_http_msg_limits_t message_limits() noexcept;

/// Sends the answer. Where the client has gone, RESTinio drops it.
restinio::request_handling_status_t send(const restinio::request_handle_t& to, const reply& r);

/// Answers with what `work` returns, or with what has become of it. *Cancellation* is passed on.
asio::awaitable<void> answer(restinio::request_handle_t to, asio::awaitable<reply> work);

}  // namespace order_server
