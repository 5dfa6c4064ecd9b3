// Servers that are stopped, paused and cut off from each other, awaited and not.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/testing/detail/peer_network.hpp>
#include <zkasio/testing/ensemble.hpp>
#include <zkasio/testing/waits.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio::test {
namespace {

// The server that it is sent to may be about to give up its connections, and an election may outlast the session.
asio::awaitable<void> create_in_the_end(const client& zk, std::string path) {
    for (;;) {
        const std::error_code code = co_await code_of(zk.create_unless_exists(path));
        if (!code) co_return;
        if (code != condition::retryable && code != errc::session_expired) throw error(code, "create", path);
        co_await zk.connected();
    }
}

}  // namespace

TEST_CASE("testing: ports are none of those that the kernel gives to connections", "[testing]") {
    int first = 0;
    std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
    if (first <= 10000) return;
    for (int i = 0; i < 50; ++i) CHECK(testing::free_port("127.0.0.3") < first);
}

TEST_CASE("testing: what is no address is no address for a command either", "[testing]") {
    CHECK(failure_of([] { testing::four_letter_command("localhost", "srvr"); })
              .find("\"localhost\" is no \"address:port\"") != std::string::npos);
}

TEST_CASE("testing: a server may be paused twice, stopped while it is paused, and not before it runs", "[testing]") {
    testing::server server;
    auto twice = std::async(std::launch::async, [&] {
        server.pause();
        server.pause();
    });
    const bool returned = twice.wait_for(10s) == std::future_status::ready;
    CHECK(returned);
    server.resume();
    twice.wait();
    CHECK(server.ask("ruok") == "imok");
    server.pause();
    CHECK(server.ask("ruok").empty());
    server.stop();
    server.stop();
    CHECK(failure_of([&] { server.resume(); }) == "testing::ensemble::resume: server 0 does not run");
    server.start();
    CHECK(server.mode() == "standalone");
}

TEST_CASE("testing: a whole ensemble is started again, one after another", "[testing]") {
    testing::ensemble servers(3);
    for (int i = 0; i < 3; ++i) servers.kill(i);
    const auto began = std::chrono::steady_clock::now();
    servers.start(2);
    CHECK(std::chrono::steady_clock::now() - began < 5s);  // alone, it cannot serve
    CHECK(servers.mode(2).empty());
    servers.start(0);
    CHECK_FALSE(servers.mode(2).empty());
    CHECK_FALSE(servers.mode(0).empty());
    servers.start(1);
    CHECK(servers.mode(1) == "follower");
    CHECK(failure_of([&] { servers.start(3); }) != "nothing was thrown");
    CHECK(failure_of([&] { servers.address(3); }) != "nothing was thrown");
}

TEST_CASE("testing: servers are awaited, and the loop goes on meanwhile", "[testing]") {
    testing::server server;
    test_loop loop;
    const client zk(loop.executor(), options(server.connect_string()));
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        co_await zk.create("/a");
        co_await server.async_pause();
        const std::error_code silent = co_await code_of(timeout(200ms, zk.exists("/a")));
        CHECK(silent == errc::timed_out);
        co_await server.async_resume();
        co_await server.async_restart();
        co_await testing::until_exists(zk, "/a");
        co_await server.async_stop();
        std::string answer = co_await server.async_ask("ruok");
        CHECK(answer.empty());
        co_await server.async_start();
        answer = co_await server.async_ask("ruok");
        CHECK(answer == "imok");
        bool refused = false;
        try {
            co_await server.async_start();
        } catch (const std::logic_error&) {
            refused = true;
        }
        CHECK(refused);
        co_await server.async_kill();
        co_await server.async_start();
        co_await zk.close();
    };
    loop.run(all());
}

TEST_CASE("testing: a wait for a server is cancelled at once, and by the end of the ensemble", "[testing]") {
    auto servers = std::make_unique<testing::ensemble>(1);
    test_loop loop;
    std::function<asio::awaitable<void>()> cancelled = [&]() -> asio::awaitable<void> {
        // No ensemble of one has another leader.
        const std::error_code ended = co_await code_of(timeout(100ms, servers->async_wait_for_leader(0)));
        CHECK(ended == errc::timed_out);
    };
    loop.run(cancelled());
    asio::io_context io;
    std::vector<std::error_code> ends;
    const auto note = [&](std::exception_ptr e, int) {
        try {
            std::rethrow_exception(e);
        } catch (const std::system_error& failed) {
            ends.push_back(failed.code());
        }
    };
    asio::cancellation_signal signal;
    bool answered = false;
    servers->async_ask("ruok", 0, asio::bind_executor(io, [&](std::exception_ptr, std::string) { answered = true; }));
    servers->async_wait_for_leader(0, asio::bind_executor(io, note));
    servers->async_wait_for_leader(0, asio::bind_executor(io, asio::bind_cancellation_slot(signal.slot(), note)));
    signal.emit(asio::cancellation_type::terminal);
    // The first wait has begun by then, or is about to. The answer may overtake a caller who stands still.
    while ((!answered || ends.empty()) && io.run_one_for(20s) > 0) {
    }
    CHECK(ends.size() == 1);
    servers.reset();
    io.run();
    CHECK(ends == std::vector<std::error_code>(2, asio::error::operation_aborted));
}

TEST_CASE("testing: the address in an election's first message is replaced, whatever comes in one piece", "[testing]") {
    const std::string head("\xff\xff\xff\xff\xff\xff\x00\x00" "\0\0\0\0\0\0\0\1" "\0\0\0\x0f", 20);
    const std::string message = head + "127.0.0.1:12345" + "more";
    std::string whole = message;
    CHECK(testing_detail::replace_own_address(whole, "127.3.1.1"));
    CHECK(whole == head + "127.3.1.1:12345" + "more");
    for (std::size_t n = 0; n < head.size() + 15; ++n) {
        std::string part = message.substr(0, n);
        CHECK_FALSE(testing_detail::replace_own_address(part, "127.3.1.1"));
        CHECK(part == message.substr(0, n));
    }
    std::string other = head + "127.0.0.12:1234";  // of another length: as it is
    CHECK(testing_detail::replace_own_address(other, "127.3.1.1"));
    CHECK(other == head + "127.0.0.12:1234");
    std::string old("\0\0\0\0\0\0\0\1", 8);
    CHECK(testing_detail::replace_own_address(old, "127.3.1.1"));
}

TEST_CASE("testing: servers that nobody can come between say so", "[testing]") {
    testing::ensemble servers(3);
    CHECK(failure_of([&] { servers.isolate(0); }).find("give server_options::partitions()") != std::string::npos);
}

TEST_CASE("testing: a leader that is cut off from the other servers is none any more", "[testing]") {
    testing::ensemble servers(3, testing::server_options().partitions());
    const int old = servers.wait_for_leader();
    test_loop loop;
    const client everywhere(loop.executor(), options(servers.connect_string()));
    const client with_the_old(loop.executor(), options(servers.endpoint(old)));
    std::function<asio::awaitable<void>()> all = [&]() -> asio::awaitable<void> {
        co_await everywhere.create("/a");
        co_await with_the_old.exists("/a");
        servers.isolate(old);
        const int next = co_await servers.async_wait_for_leader(old);
        CHECK(next != old);
        co_await create_in_the_end(everywhere, "/b");
        co_await testing::until_exists(everywhere, "/a");
        auto has_stepped_down = [&]() -> asio::awaitable<bool> {
            const std::string answer = co_await servers.async_ask("srvr", old);
            co_return answer.find("Mode:") == std::string::npos;
        };
        co_await eventually(has_stepped_down);
        auto has_lost_its_clients = [&]() -> asio::awaitable<bool> {
            co_return with_the_old.state() != session_state::connected;
        };
        co_await eventually(has_lost_its_clients);
        const std::error_code alone = co_await code_of(timeout(1s, with_the_old.exists("/b")));
        CHECK(alone);
        servers.heal();
        co_await testing::until_exists(with_the_old, "/b");
        const std::string again = servers.mode(old);
        CHECK(again == "follower");
        CHECK(servers.leader() == next);
        co_await with_the_old.close();
        co_await everywhere.close();
    };
    loop.run(all());
}

TEST_CASE("testing: each server in its turn is cut off from the others, and started there", "[testing]") {
    testing::ensemble servers(3, testing::server_options().partitions());
    const std::vector<int> some{0}, others{1, 2};
    for (int i = 0; i < 3; ++i) {
        INFO("server " << i);
        servers.isolate(i);
        CHECK(servers.wait_for_leader(i) != i);
        servers.kill(i);
        servers.start(i);  // without a quorum: at once
        CHECK(servers.mode(i).empty());
        servers.heal();
        CHECK(servers.wait_for_leader() != i);
        const auto give_up = std::chrono::steady_clock::now() + 60s;
        while (servers.mode(i) != "follower" && std::chrono::steady_clock::now() < give_up) {
        }
        CHECK(servers.mode(i) == "follower");
    }
    servers.partition(some, others);
    CHECK(servers.wait_for_leader(0) != 0);
}

}  // namespace zkasio::test
