#include "demo_actions.hpp"

#include "origins.hpp"

#include <zkasio/create_options.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/awaitable.hpp>

#include <csignal>
#include <cstdint>
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

// The node of a page that comes from there, "127.0.0.1:8080".
std::string page_node(const options& how, const std::string& host_and_port) {
    return how.root + "/pages/" + host_and_port;
}

// Whether one of the instances has sent the page that asks; what is no browser says nothing, and may.
asio::awaitable<bool> may_ask(handlers& with, std::string origin) {
    if (origin.empty()) co_return true;
    if (!is_loopback_origin(origin)) co_return false;
    const std::string path = page_node(with.how, origin.substr(std::string_view("http://").size()));
    if (!zkasio::path_problem(path).empty()) co_return false;
    const auto known = co_await with.zk.exists(path);
    co_return known.has_value();
}

asio::awaitable<reply> send_signal(handlers& with, std::string origin, pid_t pid, int number) {
    const bool may = co_await may_ask(with, origin);
    if (!may) co_return failure(403, "not for this page");
    if (!is_sibling(pid)) co_return failure(404, "no instance of this demo");
    // Of instances that all stand still, none could resume another.
    if (number == SIGSTOP && pid == ::getpid()) {
        reply refused = failure(409, "no other instance runs that could resume this one");
        co_return std::move(refused.allow(std::move(origin)));
    }
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

asio::awaitable<void> make_page_known(zkasio::client zk, const options& how) {
    const std::string path = page_node(how, how.address + ":" + std::to_string(how.port));
    auto write = [&]() -> asio::awaitable<void> { co_await zk.create_or_set(path, "", zkasio::with_parents()); };
    co_await zkasio::retry_until_certain(zkasio::toolbox(zk).make_back_off(), write);
}

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
