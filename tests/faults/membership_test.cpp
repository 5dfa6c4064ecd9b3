#include "support/test_client.hpp"
#include "support/test_server.hpp"

#include <zkasio/membership/persistent_node.hpp>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("a persistent node replaces what a session that was given up has left behind", "[clear]") {
    test_server server;
    auto body = [&](test_client zk) -> asio::awaitable<void> {
        const persistent_node node(zk, "/node", "data");
        co_await node.created();
        const node_data before = co_await zk.get("/node");
        server.kill();
        auto given_up = [&]() -> asio::awaitable<bool> {
            co_return zk.session_now().id() != before.stat.ephemeral_owner;
        };
        co_await eventually(given_up, 40s);
        // Sessions live for one more timeout when a server is back.
        server.start();
        co_await zk.connected();
        const auto begin = boot_clock::now();
        auto replaced = [&]() -> asio::awaitable<bool> {
            const std::optional<node_stat> now = co_await zk.exists("/node");
            co_return now && now->ephemeral_owner == zk.session_now().id();
        };
        co_await eventually(replaced);
        CHECK(boot_clock::now() - begin < paced(5s));
        const std::string path = co_await node.created();
        CHECK(path == "/node");
    };
    with_client_for(120s, options(server.connect_string()).session_timeout(paced(10s)), body);
}
