// A client's session through TLS, with a real server.

#include "tls/tls_server.hpp"

#include "support/test_client.hpp"

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("a client whose certificate is accepted reads, writes, watches and closes its session") {
    const tls_server server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "tls");
        co_await zk.create(dir + "/a", "one");
        const node_data read = co_await zk.get(dir + "/a");
        CHECK(read.data == "one");
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
    };
    with_client(options(server.address()).tls(server.files()), body);
}
