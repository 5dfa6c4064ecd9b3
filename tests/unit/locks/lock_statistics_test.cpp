// What is counted, and what is told of locks that no contender is behind.

#include "support/recording_observer.hpp"
#include "unit/locks/granted_lock.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/detail/telemetry/statistics.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;

namespace {

asio::awaitable<std::optional<lock_guard>> failing_attempt() {
    throw error(zk_errc::no_auth, "acquire", "/lock");
    co_return std::nullopt;
}

asio::awaitable<void> outcome_of(asio::awaitable<std::optional<lock_guard>> attempt) { co_await std::move(attempt); }

}  // namespace

TEST_CASE("statistics: a request that was not sent has waited, and was not on the wire") {
    statistics s;
    s.ended(0, true, 3ms, 0ns);
    s.ended(0, false, 3ms, 40ms);
    const client_stats seen = s.get();
    REQUIRE(seen.operations.size() == 1);
    CHECK(seen.operations.front().failed == 1);
    CHECK(seen.operations.front().succeeded == 1);
    CHECK(seen.operations.front().in_queue.count() == 2);
    CHECK(seen.operations.front().in_queue.sum == 6ms);
    CHECK(seen.operations.front().on_the_wire.count() == 1);
    CHECK(seen.operations.front().on_the_wire.sum == 40ms);
}

TEST_CASE("statistics: waits and holds, watches and their events are counted apart") {
    statistics s;
    lock_wait_report wait;
    wait.ended = wait.asked + 5ms;
    s.ended(wait);
    s.watches.set(7);
    s.watch_events.add(3);
    const client_stats seen = s.get();
    CHECK(seen.locks.waits.count() == 1);
    CHECK(seen.locks.holds.count() == 0);
    CHECK(seen.watches == 7);
    CHECK(seen.watch_events == 3);
}

TEST_CASE("statistics: an answer has the bytes of its data, paths and names") {
    reply r;
    r.data = "12345";
    r.path = "/ab";
    r.children.push_back("cd");
    r.children.push_back("e");
    r.results.resize(2);
    r.results.back().path = "/fgh";
    CHECK(size_of(r) == 5 + 3 + 2 + 1 + 4);
}

TEST_CASE("lock reports: a claim is told with its wait, its time, and how it was lost") {
    const auto seen = std::make_shared<recording_observer>();
    rig r(rig::quick().observer(seen, seen->where.get_executor()));
    const auto began = boot_clock::now() - 50ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        std::vector<std::string> paths(1, "/lock");
        std::optional<lock_guard> guard(
            std::in_place, std::make_shared<lock_detail::nodes_claim>(on, std::move(paths), 1, "/lock", began));
        r.server.expire();
        co_await on.ended();
        guard.reset();
        const std::error_code failed =
            co_await code_of(outcome_of(lock_detail::reported(failing_attempt(), zk, "/lock")));
        CHECK(failed == zk_errc::no_auth);
        co_await zk.connected();
    };
    r.run(body);
    seen->look();
    REQUIRE(seen->waits.size() == 2);
    CHECK(seen->waits.front().asked == began);
    CHECK_FALSE(seen->waits.front().refused);
    CHECK(seen->waits.back().code == zk_errc::no_auth);
    CHECK_FALSE(seen->waits.back().refused);
    REQUIRE(seen->holds.size() == 1);
    CHECK(seen->holds.front().lost == loss_reason::session_expired);
    CHECK(seen->holds.front().granted == seen->waits.front().ended);
    CHECK(seen->holds.front().path == "/lock");
    CHECK(r.core->stats().locks.held == 0);
    CHECK(r.core->stats().locks.failed == 1);
}
