#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace barrier_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

asio::awaitable<void> turns(fake_ensemble& e) {
    for (int i = 0; i < 50; ++i) co_await asio::post(e.get_executor(), asio::use_awaitable);
}

}  // namespace

TEST_CASE("barrier: closed, opened, and known by all who wait, over a lost connection and an expired session") {
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    const barrier gate(zk, "/deep/gate"), theirs(other, "/deep/gate");
    auto body = [&]() -> asio::awaitable<void> {
        const bool open = co_await gate.is_set();
        CHECK_FALSE(open);
        co_await gate.wait();
        const bool closed = co_await gate.set(), again = co_await theirs.set();
        CHECK(closed);
        CHECK_FALSE(again);
        running one(e.get_executor(), gate.wait()), two(e.get_executor(), theirs.wait());
        co_await turns(e);
        e.cut(zk);
        e.expire(other);
        co_await turns(e);
        CHECK_FALSE(one.ended());
        CHECK_FALSE(two.ended());
        const bool opened = co_await theirs.remove();
        CHECK(opened);
        const std::exception_ptr first = co_await one.end(), second = co_await two.end();
        CHECK_FALSE(first);
        CHECK_FALSE(second);
        const bool opened_again = co_await gate.remove();
        CHECK_FALSE(opened_again);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("barrier: set() knows that it has closed the barrier, also if its answer is lost") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const barrier gate(zk, "/gate"), closed_before(zk, "/closed");
        e.create("/closed");
        e.lose_answer(zk, "create");
        const bool mine = co_await gate.set();
        CHECK(mine);
        e.lose_answer(zk, "create");
        const bool theirs = co_await closed_before.set();
        CHECK_FALSE(theirs);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("barrier: a wait is cancelled, limited, and ended by close") {
    fake_ensemble e;
    e.create("/gate");
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const barrier gate(zk, "/gate");
        std::error_code late;
        try {
            co_await timeout(1s, gate.wait());
        } catch (const error& x) {
            late = x.code();
        }
        CHECK(late == errc::timed_out);
        running waits(e.get_executor(), gate.wait());
        co_await turns(e);
        co_await zk.close();
        const std::error_code closed = co_await waits.code();
        CHECK(closed == errc::client_closed);
    };
    e.run(body);
}

TEST_CASE("latch: each id counts once, and all who wait go on when none is missing") {
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const latch ours(zk, "/deep/latch", 3), theirs(other, "/deep/latch", 3);
        const std::size_t all = co_await ours.remaining();
        CHECK(all == 3);
        running waits(e.get_executor(), theirs.wait());
        e.lose_answer(zk, "create");
        const std::size_t two = co_await ours.count_down("a"), still_two = co_await theirs.count_down("a");
        CHECK(two == 2);
        CHECK(still_two == 2);
        const std::size_t one = co_await ours.count_down("b");
        CHECK(one == 1);
        CHECK_FALSE(waits.ended());
        const std::size_t none = co_await theirs.count_down("c"), more = co_await theirs.count_down("d");
        CHECK(none == 0);
        CHECK(more == 0);
        const std::exception_ptr failed = co_await waits.end();
        CHECK_FALSE(failed);
        co_await ours.wait();
        for (const char* id : {"", "done", "a/b"}) {
            std::error_code refused;
            try {
                co_await ours.count_down(id);
            } catch (const error& x) {
                refused = x.code();
            }
            CHECK(refused == errc::invalid_argument);
        }
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("latch: who waits goes on although the last writer has ended before it said so") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const latch l(zk, "/latch", 2);
        co_await l.count_down("a");
        running waits(e.get_executor(), l.wait());
        asio::steady_timer later(e.get_executor(), 5s);  // it has counted, and watches `done`
        co_await later.async_wait(asio::use_awaitable);
        e.create("/latch/b");
        const std::exception_ptr failed = co_await waits.end();
        CHECK_FALSE(failed);
        CHECK(e.stat("/latch/done"));
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace barrier_tests
