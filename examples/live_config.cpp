// A server that changes its limits while it is under load: live_config 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/config/config_value.hpp>
#include <zkasio/config/json.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

using asio::ip::tcp;

struct limits {
    int requests_per_connection = 3;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(limits, requests_per_connection)

using live_limits = std::shared_ptr<zkasio::config_value<limits>>;
using listener = std::shared_ptr<tcp::acceptor>;

// Sends each byte back, and hangs up at the limit of this moment: a look at it is cheap enough for each request.
asio::awaitable<void> serve(tcp::socket peer, live_limits live) {
    char byte = 0;
    for (int requests = 0; requests < live->value()->requests_per_connection; ++requests) {
        co_await asio::async_read(peer, asio::buffer(&byte, 1), asio::use_awaitable);
        co_await asio::async_write(peer, asio::buffer(&byte, 1), asio::use_awaitable);
    }
}

asio::awaitable<void> listen(listener on, live_limits live) {
    try {
        for (;;) {
            tcp::socket peer = co_await on->async_accept(asio::use_awaitable);
            asio::co_spawn(on->get_executor(), serve(std::move(peer), live), rethrow);
        }
    } catch (const std::system_error&) {  // closed
    }
}

// A client: how many answers it gets until the server hangs up.
asio::awaitable<int> talk(listener to) {
    tcp::socket connection(to->get_executor());
    int answers = 0;
    try {
        co_await connection.async_connect(to->local_endpoint(), asio::use_awaitable);
        for (char byte = 'x';; ++answers) {
            co_await asio::async_write(connection, asio::buffer(&byte, 1), asio::use_awaitable);
            co_await asio::async_read(connection, asio::buffer(&byte, 1), asio::use_awaitable);
        }
    } catch (const std::system_error&) {  // hung up, or closed
    }
    co_return answers;
}

asio::awaitable<void> talk_until(listener to, int limit) {
    for (int answers = 0; answers != limit;) answers = co_await talk(to);
}

asio::awaitable<void> example(zkasio::client zk) {
    co_await zk.remove_recursive("/live-config");
    zkasio::config_options<limits> options;
    options.default_value(limits()).validate([](const limits& l) { return l.requests_per_connection > 0; });
    const auto live = std::make_shared<zkasio::config_value<limits>>(zk, "/live-config/limits", options);
    co_await live->ready();
    const tcp::endpoint loopback(asio::ip::address_v4::loopback(), 0);
    const auto server = std::make_shared<tcp::acceptor>(co_await asio::this_coro::executor, loopback);
    asio::co_spawn(server->get_executor(), listen(server, live), rethrow);
    for (int i = 0; i < 4; ++i) asio::co_spawn(server->get_executor(), talk_until(server, 0), rethrow);

    co_await talk_until(server, 3);  // the default, while nobody has written
    limits more;
    more.requests_per_connection = 5;
    co_await live->set(more);  // an operator, in earnest
    co_await talk_until(server, 5);
    co_await zk.set("/live-config/limits", R"({"requests_per_connection": -1})");
    while (!live->last_error()) co_await talk(server);
    std::cout << "refused, as it should be: " << live->last_error()->what() << "\n";
    const int answers = co_await talk(server);
    expect(answers == 5, "nonsense changes nothing");
    std::cout << "the limit is " << answers << ", as before\n";
    server->close();
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers)}), rethrow);
    io.run();
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
