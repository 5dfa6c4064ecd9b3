// A total cancellation of reads and writes, sent or not, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/this_coro.hpp>

#include <cstddef>
#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct outcome_of_set {
    std::optional<std::int32_t> version;
    bool unknown = false;
    std::error_code later;  // of the next operation
};

asio::awaitable<void> write(client zk, outcome_of_set& is) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    try {
        const node_stat written = co_await zk.set("/a", "new");
        is.version = written.version;
    } catch (const error& e) {
        is.unknown = e.outcome_unknown();
        throw;
    }
    try {
        co_await zk.get("/a");
    } catch (const std::system_error& e) {
        is.later = e.code();
    }
}

asio::awaitable<void> read(client zk) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await zk.get("/a");
}

}  // namespace

TEST_CASE("total cancellation: at any step a write is either answered or not applied", "[testing]") {
    std::size_t steps = 0, answered = 0, taken_back = 0;
    for (std::size_t at = 0; at <= steps && at < 20; ++at) {
        CAPTURE(at);
        fake_ensemble ensemble(at + 1);
        ensemble.create("/a", "old");
        const client zk = ensemble.client(calm());
        outcome_of_set is;
        running writing(ensemble.get_executor(), write(zk, is));
        at_step(ensemble, steps, at, [&] { writing.cancel(asio::cancellation_type::total); });
        ensemble.run_for(10s);
        ensemble.on_step(nullptr);
        REQUIRE(writing.ended());
        CHECK_FALSE(is.unknown);
        if (is.version) {
            ++answered;
            CHECK(ensemble.data("/a") == "new");
            if (steps > at + 1) CHECK((!is.later || is.later == asio::error::operation_aborted));
        } else {
            ++taken_back;
            CHECK(ensemble.run(writing.code()) == asio::error::operation_aborted);
            CHECK(ensemble.data("/a") == "old");
        }
    }
    CHECK(answered > 0);
    CHECK(taken_back > 0);
}

TEST_CASE("total cancellation: a write that waits for a connection is taken back", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a", "old");
    const client zk = ensemble.client(calm());
    ensemble.run(zk.connected());
    ensemble.hold_down(zk);
    ensemble.run_for(1s);
    outcome_of_set is;
    running writing(ensemble.get_executor(), write(zk, is));
    ensemble.run_for(1s);
    writing.cancel(asio::cancellation_type::total);
    CHECK(ensemble.run(writing.code()) == asio::error::operation_aborted);
    CHECK_FALSE(is.unknown);
    ensemble.let_in(zk);
    ensemble.run_for(10s);
    CHECK(ensemble.data("/a") == "old");
}

TEST_CASE("total cancellation: a write under way ends with its connection, or by a terminal cancellation",
          "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a", "old");
    const client zk = ensemble.client(calm());
    ensemble.run(zk.connected());
    ensemble.silence(zk);
    outcome_of_set is;
    running writing(ensemble.get_executor(), write(zk, is));
    ensemble.run_for(1s);
    writing.cancel(asio::cancellation_type::total);
    ensemble.run_for(1s);
    CHECK_FALSE(writing.ended());
    SECTION("the connection is lost") { CHECK(ensemble.run(writing.code()) == condition::outcome_unknown); }
    SECTION("terminal") {
        writing.cancel();
        CHECK(ensemble.run(writing.code()) == asio::error::operation_aborted);
    }
    CHECK(is.unknown);
}

TEST_CASE("total cancellation: ends a read that was sent", "[testing]") {
    fake_ensemble ensemble;
    ensemble.create("/a");
    const client zk = ensemble.client(calm());
    ensemble.run(zk.connected());
    ensemble.silence(zk);
    running reading(ensemble.get_executor(), read(zk));
    ensemble.run_for(1s);
    reading.cancel(asio::cancellation_type::total);
    ensemble.run_for(1ms);
    CHECK(reading.ended());
}
