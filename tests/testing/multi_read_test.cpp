// The operations that the C library does not know, over an ensemble in memory: what they cost, lost connections,
// cancellation, and servers that do not know them.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace multi_read_testing {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

read_list of(std::size_t nodes) {
    read_list all;
    for (std::size_t i = 0; i < nodes; ++i) all.get("/a/n" + std::to_string(i));
    return all;
}

asio::awaitable<void> read_two(client zk, std::optional<std::vector<read_result>>& found) {
    read_list all;
    all.get("/a/n0").children("/a");
    std::vector<read_result> these = co_await zk.multi_read(all);
    found = std::move(these);
}

asio::awaitable<void> read_late(client zk, std::error_code& code) { code = co_await code_of(zk.multi_read(of(3))); }

}  // namespace

TEST_CASE("multi_read: one request, however many nodes", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        for (std::size_t i = 0; i < n; ++i) e.create("/a/n" + std::to_string(i), "data");
        std::vector<client> zk = connected_clients(e, 1);
        const cost_meter meter(e);
        const std::vector<read_result> found = e.run(zk[0].multi_read(of(n)));
        const cost c = meter.read();
        INFO(n << " nodes: " << c);
        CHECK(found.size() == n);
        CHECK(found.back().data == "data");
        CHECK(c.requests == 1);
        CHECK(c.writes == 0);
        CHECK(c.watches == 0);
        close_all(e, zk);
    }
}

TEST_CASE("multi_read: cancelled at any step, it ends at once, and others go on", "[testing]") {
    std::size_t steps = 0, answered = 0, cancelled = 0;
    for (std::size_t at = 0; at <= steps && at < 20; ++at) {
        CAPTURE(at);
        fake_ensemble ensemble(at + 1);
        ensemble.create("/a/n0", "x");
        client zk = ensemble.client(calm());
        std::optional<std::vector<read_result>> found;
        running reading(ensemble.get_executor(), read_two(zk, found));
        at_step(ensemble, steps, at, [&] { reading.cancel(); });
        ensemble.run_for(10s);
        ensemble.on_step(nullptr);
        REQUIRE(reading.ended());
        ++(found ? answered : cancelled);
        if (!found) CHECK(ensemble.run(reading.code()) == asio::error::operation_aborted);
        CHECK(ensemble.run(zk.get("/a/n0")).data == "x");
        ensemble.run(zk.close());
    }
    CHECK(answered > 0);
    CHECK(cancelled > 0);
}

TEST_CASE("multi_read: is sent again when its connection is lost at any step", "[testing]") {
    std::size_t steps = 0, repeated = 0;
    for (std::size_t first = 0; first <= steps && first < 20; ++first) {
        CAPTURE(first);
        fake_ensemble ensemble(first + 1);
        ensemble.create("/a/n0", "x");
        client zk = ensemble.client(calm());
        std::optional<std::vector<read_result>> found;
        running reading(ensemble.get_executor(), read_two(zk, found));
        steps = 0;
        cut_at_steps(ensemble, zk, zk, first, 0, steps);
        const std::error_code code = ensemble.run(reading.code());
        ensemble.on_step(nullptr);
        CHECK_FALSE(code);
        REQUIRE(found);
        REQUIRE(found->size() == 2);
        CHECK(found->at(0).data == "x");
        CHECK(found->at(1).names.size() == 1);
        repeated += ensemble.traffic(zk).connections > 1 ? 1 : 0;
        ensemble.run(zk.close());
    }
    CHECK(repeated > 0);
}

TEST_CASE("multi_read: servers that do not know it are asked once in a session", "[testing]") {
    fake_ensemble ensemble;
    ensemble.know_multi_read(false);
    ensemble.create("/a/n0", "x");
    client zk = ensemble.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        std::string text = co_await message_of(zk.multi_read(of(1)));
        CHECK(text.starts_with("multi_read: not implemented by this server"));
        CHECK(text.ends_with("(it needs ZooKeeper 3.6 or later)"));
        node_data still = co_await zk.get("/a/n0");
        CHECK(still.data == "x");
        const auto connections = ensemble.traffic(zk).connections;
        const std::error_code again = co_await code_of(zk.multi_read(of(1)));
        CHECK(again == zk_errc::unimplemented);
        still = co_await zk.get("/a/n0");
        CHECK(ensemble.traffic(zk).connections == connections);
        text = co_await message_of(zk.who_am_i());
        CHECK(text.ends_with("(it needs ZooKeeper 3.7 or later)"));
        const std::error_code counted = co_await code_of(zk.count_below("/a"));
        CHECK(counted == zk_errc::unimplemented);
        co_await zk.close();
    };
    ensemble.run(body());
}

TEST_CASE("multi_read: ends with its client", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a");
    client zk = ensemble.client(calm().close_timeout(1s));
    ensemble.run(zk.connected());
    ensemble.silence(zk);
    std::error_code code;
    running reading(ensemble.get_executor(), read_late(zk, code));
    ensemble.run_for(100ms);
    ensemble.run(zk.close());
    ensemble.run(reading.code());
    CHECK(code == condition::session_ended);
}

TEST_CASE("multi_read: nothing of it is sent by a client that only reads from servers without a quorum", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a");
    client zk = ensemble.client(calm().read_only());
    auto body = [&]() -> asio::awaitable<void> {
        ensemble.lose_quorum(zk);
        co_await zk.connected();
        const std::size_t asked = ensemble.requests(zk);
        std::error_code code = co_await code_of(zk.multi_read(of(1)));
        CHECK(code == zk_errc::not_read_only);
        code = co_await code_of(zk.who_am_i());
        CHECK(code == zk_errc::not_read_only);
        CHECK(ensemble.requests(zk) == asked);
        co_await zk.close();
    };
    ensemble.run(body());
}

}  // namespace multi_read_testing
