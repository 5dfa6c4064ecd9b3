#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// Handles that go, and event loops that end, while coroutines of counters and barriers are suspended.
namespace counters_lifetime_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

counter_options text() { return counter_options().format(kazoo_counter()).promote_to("/lock").tries(0); }

asio::awaitable<void> quietly(asio::awaitable<void> task, int& ended) {
    try {
        co_await std::move(task);
    } catch (const std::system_error&) {
    }
    ++ended;
}

asio::awaitable<void> apply(client zk) {
    const session on = co_await zk.current_session();
    transaction steps;
    steps.create("/x");
    co_await receipts(on, "/r").apply(steps);
}
asio::awaitable<void> add(atomic_counter c) { co_await c.add(1); }
asio::awaitable<void> compare(atomic_counter c) { co_await c.compare_and_set(0, 5); }
asio::awaitable<void> take(id_allocator ids) { co_await ids.next(); }
asio::awaitable<void> number(client zk) { co_await next_number(zk, "/number"); }
asio::awaitable<void> close_gate(barrier b) { co_await b.set(); }
asio::awaitable<void> count_down(latch l) { co_await l.count_down("a"); }

// Starts everything, on handles that go at once.
void start_all(fake_ensemble& e, const client& zk, int& ended) {
    const auto start = [&](asio::awaitable<void> task) {
        asio::co_spawn(e.get_executor(), quietly(std::move(task), ended), asio::detached);
    };
    start(apply(zk));
    start(add(atomic_counter(zk, "/n", text())));
    start(add(atomic_counter(zk, "/n", text())));
    start(compare(atomic_counter(zk, "/n", text())));
    start(take(id_allocator(zk, "/ids", id_options().block(1))));
    start(number(zk));
    start(close_gate(barrier(zk, "/gate")));
    start(count_down(latch(zk, "/latch", 1)));
    start(barrier(zk, "/open").wait());
    start(latch(zk, "/latch", 1).wait());
}

}  // namespace

TEST_CASE("counters and barriers: everything ends although all handles are gone, and the client with it") {
    fake_ensemble e;
    int ended = 0;
    {
        const client zk = e.client(calm());
        start_all(e, zk, ended);
    }
    e.run_dry();
    CHECK(ended == 10);
    CHECK(e.sessions() == 0);
    CHECK(e.exists("/x"));
    CHECK(e.exists("/latch/done"));
}

TEST_CASE("counters and barriers: the event loop ends while they are suspended, after any step") {
    struct stop {};
    std::size_t steps = 1;
    for (std::size_t at = 0; at < steps; ++at) {
        INFO("after step " << at);
        int ended = 0;
        fake_ensemble e;
        const client zk = e.client(calm());
        start_all(e, zk, ended);
        std::size_t step = 0;
        e.on_step([&](std::string_view) {
            if (step++ == at) asio::post(e.context(), [] { throw stop(); });
        });
        bool stopped = false;
        try {
            e.run_for(10s);
        } catch (const stop&) {
            stopped = true;
        }
        e.on_step(nullptr);
        if (at == 0) CHECK(stopped);
        if (stopped) steps = at + 2;
        CHECK(ended <= 10);
    }
    CHECK(steps > 20);
}

}  // namespace counters_lifetime_tests
