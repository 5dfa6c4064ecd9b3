#include "demo_actions.hpp"

#include <zkasio/discovery/registry.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <sys/types.h>
#include <unistd.h>

namespace order_server {

namespace {

using restinio::request_handle_t;
using restinio::router::route_params_t;

// An order server, and started together with this one.
bool is_sibling(pid_t pid) {
    std::error_code failed, failed_too;
    const auto its = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", failed);
    const auto ours = std::filesystem::read_symlink("/proc/self/exe", failed_too);
    return !failed && !failed_too && its == ours && ::getpgid(pid) == ::getpgrp();
}

int signal_of(std::string_view action) noexcept {
    if (action == "kill") return SIGKILL;
    if (action == "pause") return SIGSTOP;
    if (action == "resume") return SIGCONT;
    return 0;
}

// Whether one of the instances has sent the page that asks; what is no browser says nothing, and may.
asio::awaitable<bool> may_ask(handlers& with, std::string origin) {
    if (origin.empty()) co_return true;
    const zkasio::registry services(with.zk, with.how.root + "/services");
    const zkasio::service_view all = co_await services.instances("orders");
    bool found = false;
    all.for_each([&](const std::string&, const zkasio::service_instance& i) {
        found = found || origin == "http://" + i.address() + ":" + std::to_string(i.port().value_or(0));
    });
    co_return found;
}

asio::awaitable<reply> send_signal(handlers& with, std::string origin, pid_t pid, int number) {
    const bool may = co_await may_ask(with, origin);
    if (!may) co_return failure(403, "not for this page");
    if (!is_sibling(pid)) co_return failure(404, "no instance of this demo");
    ::kill(pid, number);
    reply done(200, nlohmann::json::object());
    co_return std::move(done.allow(std::move(origin)));
}

asio::awaitable<reply> cancel(handlers& with, std::string origin, std::uint64_t number) {
    const bool may = co_await may_ask(with, origin);
    if (!may) co_return failure(403, "not for this page");
    nlohmann::json body;
    body["cancelled"] = with.requests.cancel(number);  // or it has just ended
    reply done(200, body);
    co_return std::move(done.allow(std::move(origin)));
}

std::string origin_of(const request_handle_t& r) {
    return r->header().get_field_or(restinio::http_field::origin, "");
}

}  // namespace

void add_demo_routes(http_router& to, handlers& with) {
    to.http_post(R"(/demo/processes/:pid(\d{1,9})/:action)", [&with](request_handle_t r, route_params_t params) {
        const int number = signal_of(restinio::cast_to<std::string>(params["action"]));
        if (number == 0) return send(r, failure(404, "kill, pause or resume"));
        const auto pid = restinio::cast_to<pid_t>(params["pid"]);
        start(with, with.requests.begin(r->connection_id()), r, send_signal(with, origin_of(r), pid, number));
        return restinio::request_accepted();
    });
    to.http_post(R"(/demo/requests/:number(\d{1,18})/cancel)", [&with](request_handle_t r, route_params_t params) {
        const auto number = restinio::cast_to<std::uint64_t>(params["number"]);
        start(with, with.requests.begin(r->connection_id()), r, cancel(with, origin_of(r), number));
        return restinio::request_accepted();
    });
}

}  // namespace order_server
