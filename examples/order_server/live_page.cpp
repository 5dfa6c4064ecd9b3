#include "live_page.hpp"

#include "live_state.hpp"
#include "origins.hpp"
#include "page_files.hpp"

#include <zkasio/as_result.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/timeout.hpp>

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace order_server {

namespace {

using namespace std::chrono_literals;
using restinio::request_handle_t;
using stream = restinio::response_builder_t<restinio::chunked_output_t>;

constexpr auto pause_between_events = 100ms;  // nobody sees more
constexpr auto sign_of_life = 1s;             // at the latest after so long the page hears something

// *Completes when* what was appended has been written, or never will be: so a slow client is not sent more and more.
asio::awaitable<void> flush(stream& to) {
    auto initiate = [&to](auto handler) {
        // RESTinio's callback has to be copyable.
        auto kept = std::make_shared<decltype(handler)>(std::move(handler));
        to.flush([kept](const asio::error_code&) {
            const auto home = asio::get_associated_executor(*kept);
            asio::post(home, [kept] { std::move (*kept)(); });
        });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiate, asio::use_awaitable);
}

std::string event(const nlohmann::json& state) { return "data: " + state.dump() + "\n\n"; }

asio::awaitable<void> send_events(handlers& with, stream& to) {
    zkasio::tree_cache_options three_levels;
    three_levels.depth(3);
    const zkasio::tree_cache nodes(with.zk, with.how.root, three_levels);
    const zkasio::cache_changes changes = nodes.changes();
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        const auto changed = co_await zkasio::as_result(zkasio::timeout(sign_of_life, changes.next()));
        if (!changed && changed.error().code() != zkasio::errc::timed_out) throw changed.error();
        nlohmann::json state = live_state(nodes.snapshot(), with.how.root);
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        state["self"] = with.how.name;
        state["now"] = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
        to.append_chunk(restinio::writable_item_t(event(state)));
        co_await flush(to);
        pause.expires_after(pause_between_events);
        co_await pause.async_wait(asio::use_awaitable);
    }
}

// Until the client has gone, or this server ends.
asio::awaitable<void> show(handlers& with, request_handle_t to) {
    auto response = to->create_response<restinio::chunked_output_t>();
    response.append_header(restinio::http_field::content_type, "text/event-stream");
    response.append_header(restinio::http_field::cache_control, "no-store");
    const std::string origin = to->header().get_field_or(restinio::http_field::origin, "");
    if (with.how.demo && is_loopback_origin(origin))
        response.append_header(restinio::http_field::access_control_allow_origin, origin);
    try {
        co_await send_events(with, response);
    } catch (const std::system_error&) {  // cancelled, or the client of ZooKeeper is closed
    }
    response.done();
}

const char* type_of(std::string_view name) noexcept {
    if (name.ends_with(".html")) return "text/html; charset=utf-8";
    if (name.ends_with(".css")) return "text/css; charset=utf-8";
    if (name.ends_with(".svg")) return "image/svg+xml";
    return "text/javascript; charset=utf-8";
}

restinio::request_handling_status_t send_file(const request_handle_t& to, const page_file& file) {
    auto response = to->create_response();
    response.append_header(restinio::http_field::content_type, type_of(file.name));
    response.append_header(restinio::http_field::cache_control, "no-cache");
    // Nothing but its own files; and, for the demo, the other instances.
    response.append_header("Content-Security-Policy",
                           "default-src 'self'; connect-src 'self' http://127.0.0.1:*; frame-ancestors 'none'");
    return response.set_body(std::string(file.content)).done();
}

}  // namespace

void add_page_routes(http_router& to, handlers& with) {
    for (const page_file& file : page_files()) {
        const std::string path = file.name == "index.html" ? "/" : "/" + std::string(file.name);
        to.http_get(path, [&file](const request_handle_t& r, const auto&) { return send_file(r, file); });
    }
    to.http_get("/live", [&with](const request_handle_t& r, const auto&) {
        const auto open = with.requests.begin(r->connection_id());
        open->start(show(with, r), [&with, open] { with.requests.end(*open); });
        return restinio::request_accepted();
    });
}

}  // namespace order_server
