// Real servers and a bad network. Blocking calls stand between two runs of the loop.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/testing/ensemble.hpp>
#include <zkasio/testing/network.hpp>
#include <zkasio/testing/proxy.hpp>
#include <zkasio/testing/waits.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace zkasio::test {
namespace {

}  // namespace

TEST_CASE("testing: what is missing for a server is said", "[testing]") {
    using testing::server_options;
    CHECK(testing::ensemble::impossible(server_options().java("/nowhere/java")).find(
              "no program \"/nowhere/java\": install a JRE") == 0);
    CHECK(failure_of([] { testing::server s(server_options().java("/nowhere/java")); })
              .find("testing::ensemble: no program") == 0);
    CHECK(failure_of([] { testing::proxy p("localhost:1"); }).find("\"localhost:1\" is no \"address:port\"") !=
          std::string::npos);
    if (!testing::ensemble::impossible().empty()) return;
    CHECK(failure_of([] { testing::ensemble two(2); }).find("an odd number") != std::string::npos);
    const std::string text = failure_of([] { testing::server s(server_options().class_path("/nowhere")); });
    INFO(text);
    CHECK(text.find("server 0 has ended") != std::string::npos);
    CHECK(text.find("QuorumPeerMain") != std::string::npos);  // of its log
}

TEST_CASE("testing: a server is paused, killed and started again, and its session goes on", "[testing]") {
    // The loop stands still while a server starts.
    testing::server server(testing::server_options().line(long_sessions));
    CHECK(server.mode() == "standalone");
    test_loop loop;
    const client zk(loop.executor(), options(server.connect_string()).session_timeout(60s));
    std::function<asio::awaitable<void>()> before = [&]() -> asio::awaitable<void> {
        const auto how = create_options().mode(create_mode::ephemeral);
        co_await zk.create("/mine", "x", how);
        server.pause();
        server.resume();
        server.restart();
        co_await testing::until_exists(zk, "/mine");
        CHECK(failure_of([&] { server.start(); }).find("runs already") != std::string::npos);
        server.stop();
        CHECK(server.mode().empty());
        CHECK(failure_of([&] { server.pause(); }).find("does not run") != std::string::npos);
        server.start();
        co_await testing::until_exists(zk, "/mine");
        co_await testing::expire_session(zk);
        co_await testing::until_gone(zk, "/mine");
        co_await zk.close();
    };
    loop.run(before());
}

// A connection that a server's process had as well would not end when this process closes it.
TEST_CASE("testing: a server that is started keeps no descriptor of this process open", "[testing]") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_NONBLOCK) == 0);
    const testing::server server;
    ::close(ends[1]);
    char c = 0;
    CHECK(::read(ends[0], &c, 1) == 0);
    ::close(ends[0]);
}

TEST_CASE("testing: a proxy refuses, silences and cuts", "[testing]") {
    testing::server server;
    testing::proxy network(server.endpoint());
    test_loop loop;
    const client zk(loop.executor(), options(network.address()).connection_timeout(5s));
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        co_await zk.create("/a");
        CHECK(network.connections() == 1);
        network.refuse(true);
        network.cut_all();
        const std::error_code refused = co_await code_of(zk.set("/a", "x"));
        CHECK((refused == errc::not_connected || refused == zk_errc::connection_loss));
        network.refuse(false);
        co_await testing::until_exists(zk, "/a");
        CHECK(network.connections() > 1);
        network.silence(true);
        const std::error_code silent = co_await code_of(timeout(500ms, zk.set("/a", "y")));
        CHECK(silent == errc::timed_out);
        network.silence(false);
        const node_data now = co_await zk.get("/a");
        CHECK(now.data == "y");  // it was under way
        co_await zk.close();
    };
    loop.run(all());
}

TEST_CASE("testing: a client that is cut off from two servers of three uses the third", "[testing]") {
    testing::ensemble servers(3);
    const testing::network network(servers);
    test_loop loop;
    const client zk(loop.executor(), options(network.connect_string()).connection_timeout(5s));
    const std::vector<int> order{2, 0, 1};
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        co_await zk.create("/a");
        for (const int reachable : order) {
            network.cut_off_all();
            const std::error_code gone = co_await code_of(zk.set("/a", "x"));
            CHECK((gone == errc::not_connected || gone == zk_errc::connection_loss));
            network.to(reachable).refuse(false);
            co_await testing::until_exists(zk, "/a");
            CHECK(servers.ask("cons", reachable).find("sid=0x") != std::string::npos);
        }
        network.heal();
        co_await zk.close();
    };
    loop.run(all());
}

TEST_CASE("testing: an ensemble elects another leader when its own is killed", "[testing]") {
    testing::ensemble servers(3);
    const int leader = servers.leader();
    REQUIRE(leader >= 0);
    test_loop loop;
    const client zk(loop.executor(), options(servers.connect_string()));
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        co_await zk.create("/a");
        servers.kill(leader);
        co_await testing::until_exists(zk, "/a");
        auto reached = [&]() -> asio::awaitable<bool> {
            const int now = servers.leader();
            co_return now >= 0 && now != leader;
        };
        co_await eventually(reached);
        co_await zk.close();
    };
    loop.run(all());
}

}  // namespace zkasio::test
