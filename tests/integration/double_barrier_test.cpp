#include "support/test_client.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>

#include <asio/this_coro.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace double_barrier_integration_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<bool> is_empty(client zk, std::string directory) {
    const node_children found = co_await zk.children(directory);
    co_return found.names.empty();
}

}  // namespace

TEST_CASE("double_barrier: several clients begin and end together, over a lost session") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "double-barrier") + "/round";
        const auto executor = co_await asio::this_coro::executor;
        const test_client one(executor, options()), two(executor, options());
        int begun = 0, leaving = 0, left = 0;
        const auto play = [&](client of) -> asio::awaitable<void> {
            for (int round = 1; round <= 3; ++round) {
                ++begun;
                barrier_entry entry = co_await double_barrier(of, dir, 3).enter();
                CHECK(begun >= 3 * round);
                CHECK(entry.held());
                ++leaving;
                co_await entry.leave();
                CHECK(leaving >= 3 * round);
                ++left;
            }
        };
        const running a(executor, play(zk)), b(executor, play(one)), c(executor, play(two));
        const std::exception_ptr of_a = co_await a.end(), of_b = co_await b.end(), of_c = co_await c.end();
        CHECK_FALSE(of_a);
        CHECK_FALSE(of_b);
        CHECK_FALSE(of_c);
        CHECK(left == 9);
        const bool empty = co_await is_empty(zk, dir);
        CHECK(empty);

        const double_barrier pair(zk, dir, 2), theirs(one, dir, 2);
        std::optional<barrier_entry> lost;
        const auto enter = [&]() -> asio::awaitable<void> { lost.emplace(co_await theirs.enter()); };
        const running entering(executor, enter());
        barrier_entry ours = co_await pair.enter();
        co_await entering.end();
        REQUIRE(lost);
        co_await expire_session(one);
        co_await ours.leave();
        const loss_reason why = co_await lost->lost();
        CHECK(why != loss_reason::none);
        lost.reset();
        co_await one.close();
        co_await two.close();
    };
    with_client(body);
}

TEST_CASE("double_barrier: who waits too long, and who is too many, leaves nothing", "[any-server]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "double-barrier-late") + "/round";
        double_barrier_options exact;
        exact.exactly();
        const double_barrier pair(zk, dir, 2, exact);
        const std::error_code late = co_await code_of(timeout(100ms, pair.enter()));
        CHECK(late == errc::timed_out);
        co_await zk.idle();
        const bool empty = co_await is_empty(zk, dir);
        CHECK(empty);

        std::optional<barrier_entry> first;
        const auto enter = [&]() -> asio::awaitable<void> { first.emplace(co_await pair.enter()); };
        const running entering(co_await asio::this_coro::executor, enter());
        barrier_entry second = co_await pair.enter();
        co_await entering.end();
        const std::error_code refused = co_await code_of(pair.enter());
        CHECK(refused == errc::too_many_members);
        first.reset();
        co_await second.leave();
        co_await zk.idle();
        const bool empty_again = co_await is_empty(zk, dir);
        CHECK(empty_again);

        const auto alone = double_barrier(zk, dir, 1);
        auto work = [](barrier_entry& entry) -> asio::awaitable<std::string> { co_return entry.path(); };
        const std::string node = co_await alone.run(work);
        CHECK(node.starts_with(dir + "/"));
    };
    with_client(body);
}

}  // namespace double_barrier_integration_tests
