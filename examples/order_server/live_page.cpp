#include "live_page.hpp"

#include "live_state.hpp"
#include "origins.hpp"
#include "page_files.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
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

std::string event(const nlohmann::json& state) { return "data: " + text_of(state) + "\n\n"; }

// The nodes of the root, for all who look at the page: one cache, while there are any.
class shared_nodes {
public:
    explicit shared_nodes(handlers& with) : with_(with) {}

    std::shared_ptr<const zkasio::tree_cache> get() {
        const std::lock_guard lock(mutex_);
        std::shared_ptr<const zkasio::tree_cache> nodes = nodes_.lock();
        if (nodes) return nodes;
        zkasio::tree_cache_options three_levels;
        three_levels.depth(3);
        nodes = std::make_shared<const zkasio::tree_cache>(with_.zk, with_.how.root, three_levels);
        nodes_ = nodes;
        return nodes;
    }

private:
    handlers& with_;
    std::mutex mutex_;
    std::weak_ptr<const zkasio::tree_cache> nodes_;
};

asio::awaitable<void> send_events(handlers& with, std::shared_ptr<const zkasio::tree_cache> nodes, stream& to) {
    const zkasio::cache_changes changes = nodes->changes();
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        const auto changed = co_await zkasio::as_result(zkasio::timeout(sign_of_life, changes.next()));
        if (!changed && changed.error().code() != zkasio::errc::timed_out) throw changed.error();
        nlohmann::json state = live_state(nodes->snapshot(), with.how.root);
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
asio::awaitable<void> show(handlers& with, std::shared_ptr<const zkasio::tree_cache> nodes, request_handle_t to) {
    auto response = to->create_response<restinio::chunked_output_t>();
    response.append_header(restinio::http_field::content_type, "text/event-stream");
    response.append_header(restinio::http_field::cache_control, "no-store");
    const std::string origin = to->header().get_field_or(restinio::http_field::origin, "");
    if (with.how.demo && is_loopback_origin(origin))
        response.append_header(restinio::http_field::access_control_allow_origin, origin);
    try {
        co_await send_events(with, std::move(nodes), response);
    } catch (const std::system_error&) {  // cancelled, or the client of ZooKeeper is closed
    } catch (const std::exception& e) {  // whatever it is, the page is told that this ends, and asks again
        std::cerr << with.how.name + ": /live: " + e.what() + "\n";
    }
    response.done();
}

const char* type_of(std::string_view name) noexcept {
    if (name.ends_with(".html")) return "text/html; charset=utf-8";
    if (name.ends_with(".css")) return "text/css; charset=utf-8";
    if (name.ends_with(".svg")) return "image/svg+xml";
    return "text/javascript; charset=utf-8";
}

restinio::request_handling_status_t send_file(const request_handle_t& to, const page_file& file, const options& how) {
    auto response = to->create_response();
    response.append_header(restinio::http_field::content_type, type_of(file.name));
    response.append_header(restinio::http_field::cache_control, "no-cache");
    // Nothing but its own files; and, for the demo, the other instances.
    const std::string others = "http://" + how.address + ":*";
    response.append_header("Content-Security-Policy",
                           "default-src 'self'; connect-src 'self' " + others + "; frame-ancestors 'none'");
    return response.set_body(std::string(file.content)).done();
}

// With --demo the page talks to other instances, too: they know it by this one's address, not by "localhost".
bool is_by_another_name(const request_handle_t& r, const options& how) {
    return how.demo && r->header().get_field_or(restinio::http_field::host, "").starts_with("localhost");
}

restinio::request_handling_status_t send_elsewhere(const request_handle_t& to, const options& how) {
    auto response = to->create_response(restinio::status_temporary_redirect());
    const std::string page = "http://" + how.address + ":" + std::to_string(how.port) + "/";
    response.append_header(restinio::http_field::location, page);
    return response.done();
}

}  // namespace

void add_page_routes(http_router& to, handlers& with) {
    for (const page_file& file : page_files()) {
        const std::string path = file.name == "index.html" ? "/" : "/" + std::string(file.name);
        to.http_get(path, [&file, &with](const request_handle_t& r, const auto&) {
            return is_by_another_name(r, with.how) ? send_elsewhere(r, with.how) : send_file(r, file, with.how);
        });
    }
    const auto nodes = std::make_shared<shared_nodes>(with);
    to.http_get("/live", [&with, nodes](const request_handle_t& r, const auto&) {
        const auto open = with.requests.begin(r->connection_id());
        open->start(show(with, nodes->get(), r), [&with, open] { with.requests.end(*open); });
        return restinio::request_accepted();
    });
}

}  // namespace order_server
