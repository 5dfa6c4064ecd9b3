#include "http.hpp"

#include "sqlite.hpp"

#include <zkasio/error.hpp>

#include <exception>
#include <optional>
#include <system_error>
#include <utility>

namespace order_server {

namespace {

const char* reason_of(int status) noexcept {
    switch (status) {
        case 200: return "OK";
        case 201: return "Created";
        case 400: return "Bad Request";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 409: return "Conflict";
        case 413: return "Content Too Large";
        case 422: return "Unprocessable Content";
        case 501: return "Not Implemented";
        case 503: return "Service Unavailable";
        default: return "Internal Server Error";
    }
}

reply reply_to(std::exception_ptr failed) {
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {  // zkasio::error is one
        return failure(503, e.code() == zkasio::condition::cancelled ? "cancelled" : e.what());
    } catch (const store_error& e) {
        return failure(503, e.what());
    } catch (const std::exception& e) {
        return failure(500, e.what());
    }
}

}  // namespace

restinio::request_handling_status_t answering_router::operator()(restinio::request_handle_t r) const {
    try {
        // RESTinio hands such a connection over to the handler, and sets no limits to it any more.
        if (r->header().connection() == restinio::http_connection_header_t::upgrade)
            return send(r, failure(501, "there is no other protocol here"));
        if (r->body().size() > longest_body) return send(r, failure(413, "that is too much for an order"));
        return (*router_)(r);
    } catch (const std::exception& e) {
        return send(r, failure(400, e.what()));  // bad_request, or what RESTinio cannot decode: nothing has begun
    }
}

restinio::incoming_http_msg_limits_t message_limits() noexcept {
    restinio::incoming_http_msg_limits_t limits;
    return limits.max_url_size(2048).max_field_name_size(256).max_field_value_size(4096).max_field_count(100)
        .max_body_size(4 * longest_body);
}

restinio::request_handling_status_t send(const restinio::request_handle_t& to, const reply& r) {
    const auto status = restinio::http_status_code_t(static_cast<std::uint16_t>(r.status()));
    auto response = to->create_response(restinio::http_status_line_t(status, reason_of(r.status())));
    response.append_header(restinio::http_field::content_type, r.type());
    response.append_header(restinio::http_field::cache_control, "no-store");
    if (r.status() == 503) response.append_header(restinio::http_field::retry_after, "1");
    if (!r.origin().empty())
        response.append_header(restinio::http_field::access_control_allow_origin, r.origin());
    return response.set_body(r.body()).done();
}

asio::awaitable<void> answer(restinio::request_handle_t to, asio::awaitable<reply> work) {
    std::optional<reply> r;
    try {
        r = co_await std::move(work);
    } catch (...) {
        r = reply_to(std::current_exception());
    }
    send(to, *r);
}

}  // namespace order_server
