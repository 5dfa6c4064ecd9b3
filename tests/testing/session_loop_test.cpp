// run_in_each_session() over an ensemble in memory: its pauses, to the tenth of a second.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/session_loop.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <ctime>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

TEST_CASE("session loop: pauses begin anew after a body that has run for longer than a session timeout", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(client_options("zk1:2181").session_timeout(10s));
    std::vector<fake_ensemble::duration> began, ended;
    auto body = [&](const session&) -> asio::awaitable<void> {
        began.push_back(ensemble.now());
        asio::steady_timer work(co_await asio::this_coro::executor, began.size() == 12 ? 11s : 1s);
        co_await work.async_wait(asio::use_awaitable);
        ended.push_back(ensemble.now());
        throw error(zk_errc::throttled, "work");
    };
    {
        const session_loop loop = run_in_each_session(zk, body);
        ensemble.run_for(80s);
    }
    ensemble.run(zk.idle());
    REQUIRE(began.size() > 13);
    CHECK(began[1] - ended[0] < 100ms);
    CHECK(began[11] - ended[10] > 900ms);
    CHECK(began[12] - ended[11] < 100ms);
}

namespace {

// The processor time of two minutes without a connection, and five seconds with one.
double effort_of_outage(any_duration connection_timeout) {
    fake_ensemble ensemble;
    const client zk = ensemble.client(
        client_options("zk1:2181").session_timeout(10s).connection_timeout(connection_timeout));
    ensemble.hold_down(zk);
    bool began = false;
    auto body = [&](const session&) -> asio::awaitable<void> {
        began = true;
        co_return;
    };
    const session_loop loop = run_in_each_session(zk, body);
    const std::clock_t before = std::clock();
    ensemble.run_for(2min);
    CHECK_FALSE(began);
    ensemble.let_in(zk);
    ensemble.run_for(5s);
    CHECK(began);
    ensemble.run(zk.close());
    return static_cast<double>(std::clock() - before);
}

}  // namespace

TEST_CASE("session loop: a very short connection_timeout lets no loop spin without a connection", "[testing]") {
    CHECK(effort_of_outage(1ns) < 10 * effort_of_outage(200ms));
}
