// A total cancellation of reads and writes, sent or not, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

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

namespace {

asio::awaitable<void> create_with_parents(client zk, bool& made) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    create_options how;
    how.parents(missing_parents::create_persistent);
    const created node = co_await zk.create("/p/q/r", "data", how);
    made = node.path == "/p/q/r";
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    CHECK(throws);
}

}  // namespace

TEST_CASE("total cancellation: a create with parents is carried out, or leaves none of them", "[testing]") {
    std::size_t steps = 0, complete = 0, without_effect = 0;
    const bool cut = GENERATE(false, true);
    for (std::size_t at = 0; at <= steps && at < 40; ++at) {
        CAPTURE(at, cut);
        fake_ensemble ensemble(at + 1);
        const client zk = ensemble.client(calm());
        bool made = false;
        running creating(ensemble.get_executor(), create_with_parents(zk, made));
        at_step(ensemble, steps, at, [&] {
            creating.cancel(asio::cancellation_type::total);
            if (cut) ensemble.cut(zk);
        });
        ensemble.run_for(10s);
        ensemble.on_step(nullptr);
        REQUIRE(creating.ended());
        const std::error_code code = ensemble.run(creating.code());
        CAPTURE(code.message());
        if (made || !code) {
            ++complete;
            CHECK(ensemble.data("/p/q/r") == "data");
        } else if (code == asio::error::operation_aborted) {
            ++without_effect;
            CHECK(ensemble.paths().empty());
        } else {
            CHECK(cut);
            CHECK(code == condition::retryable);
        }
    }
    CHECK(complete > 0);
    CHECK(without_effect > 0);
}

TEST_CASE("total cancellation: a create whose parents were created waits for its connection", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(calm());
    ensemble.run(zk.connected());
    bool made = false;
    running creating(ensemble.get_executor(), create_with_parents(zk, made));
    ensemble.on_step([&](std::string_view line) {
        if (line.find("apply 0: create /p/q/r") != line.npos && ensemble.exists("/p/q"))
            asio::post(ensemble.context(), [&] { ensemble.hold_down(zk); });
        if (line.find("deliver 0: create /p/q ") != line.npos)
            asio::post(ensemble.context(), [&] { ensemble.hold_down(zk); });
    });
    ensemble.run_for(1s);
    ensemble.on_step(nullptr);
    REQUIRE(ensemble.exists("/p/q"));
    creating.cancel(asio::cancellation_type::total);
    ensemble.run_for(1s);
    ensemble.let_in(zk);
    ensemble.run_for(5s);
    REQUIRE(creating.ended());
    const std::error_code code = ensemble.run(creating.code());
    CAPTURE(code.message());
    CHECK(((!code && made && ensemble.exists("/p/q/r")) || code == condition::retryable));
}

TEST_CASE("cancellation: a create with parents ends by a terminal one at each step", "[testing]") {
    std::size_t steps = 0, cancelled = 0;
    for (std::size_t at = 0; at <= steps && at < 40; ++at) {
        CAPTURE(at);
        fake_ensemble ensemble(at + 1);
        const client zk = ensemble.client(calm());
        bool made = false;
        running creating(ensemble.get_executor(), create_with_parents(zk, made));
        at_step(ensemble, steps, at, [&] { creating.cancel(); });
        ensemble.run_for(10s);
        ensemble.on_step(nullptr);
        REQUIRE(creating.ended());
        const std::error_code code = ensemble.run(creating.code());
        if (code == asio::error::operation_aborted) ++cancelled;
        CHECK((!code || code == asio::error::operation_aborted));
    }
    CHECK(cancelled > 3);
}
