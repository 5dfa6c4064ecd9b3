// An async server as one would write it: several instances share a store of orders, and ZooKeeper keeps them from
// paying an order twice.
#include "options.hpp"
#include "service.hpp"

#include <CLI/CLI.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <asio/strand.hpp>

#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

void add_options(CLI::App& app, order_server::options& how) {
    app.option_defaults()->always_capture_default();
    app.add_option("--connect", how.servers, "ZooKeeper's connect string");
    app.add_option("--root", how.root, "where the instances meet in ZooKeeper");
    app.add_option("--name", how.name, "of this instance (one at random)");
    app.add_option("--store", how.store, "the file of orders that the instances share");
    app.add_option("--address", how.address, "where to listen");
    app.add_option("--port", how.port, "where to listen");
    app.add_option("--threads", how.threads, "of the server")->check(CLI::Range(1, 64));
    app.add_option("--connections", how.connections, "at most so many at a time")->check(CLI::Range(1, 1'000'000));
    app.add_option("--request-time", how.request_time, "how long a client may take to send a request");
    app.add_option("--session-timeout", how.session_timeout, "how long the others wait for one that is dead");
    app.add_option("--bank-time", how.bank_time, "how long the simulated bank takes for a payment");
    app.add_option("--settle-every", how.settle_every, "how often the leader settles what was paid");
    app.add_flag("--demo", how.demo, "let the page kill, stop and cancel what was started together with this; on "
                                     "loopback only");
}

std::string random_name() { return "orders-" + std::to_string(std::random_device()()); }

// Four threads, one io_context: a coroutine for each request, and none of them blocks.
int serve(const order_server::options& how) {
    asio::io_context io(how.threads);
    order_server::service service(io, how);
    std::exception_ptr failed;
    const auto ended = [&](std::exception_ptr e) {
        failed = e;
        io.stop();  // connections that clients keep open are not waited for
    };
    asio::co_spawn(asio::make_strand(asio::any_io_executor(io.get_executor())), service.run(), ended);
    std::vector<std::thread> threads;
    for (int i = 1; i < how.threads; ++i) threads.emplace_back([&] { io.run(); });
    io.run();
    for (std::thread& t : threads) t.join();
    if (failed) std::rethrow_exception(failed);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    order_server::options how;
    CLI::App app{"An order server: several of them share one store, and never take a payment twice."};
    add_options(app, how);
    CLI11_PARSE(app, argc, argv);
    try {
        if (how.name.empty()) how.name = random_name();
        asio::error_code no_address;  // a name, which the page of another instance would not know us by
        const auto address = asio::ip::make_address(how.address, no_address);
        if (how.demo && (no_address || !address.is_v4() || !address.is_loopback()))
            throw std::runtime_error("--demo is for an address of loopback, as 127.0.0.1, not for " + how.address);
        return serve(how);
    } catch (const std::exception& e) {
        std::cerr << how.name << ": error: " << e.what() << "\n";
        return 1;
    }
}
