#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <cstddef>
#include <exception>
#include <string_view>

namespace barrier_wait_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

asio::awaitable<void> pass(fake_ensemble& e, std::chrono::seconds time) {
    asio::steady_timer timer(e.get_executor(), time);
    co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

TEST_CASE("barrier: a client that may not read the node waits, until it is gone") {
    fake_ensemble e;
    e.create("/gate");
    e.refuse("/gate", zk_errc::no_auth);
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        running waits(e.get_executor(), barrier(zk, "/gate").wait());
        co_await pass(e, 30s);
        CHECK_FALSE(waits.ended());
        e.accept("/gate");
        co_await pass(e, 30s);
        CHECK_FALSE(waits.ended());
        e.remove("/gate");
        const std::exception_ptr failed = co_await waits.end();
        CHECK_FALSE(failed);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("barrier: a wait ends when the barrier is opened and closed again at once") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const barrier gate(two, "/gate");
            co_await gate.set();
            running waits(e.get_executor(), barrier(one, "/gate").wait());
            co_await pass(e, 2s);
            CHECK_FALSE(waits.ended());
            co_await gate.remove();
            co_await gate.set();
            co_await pass(e, 10s);
            CHECK(waits.ended());
            waits.cancel();
            co_await waits.code();
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("barrier: a wait notices after a cut, too, that the barrier was opened, and a write of the node is nothing") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const barrier gate(two, "/gate");
        co_await gate.set();
        running waits(e.get_executor(), barrier(one, "/gate").wait());
        co_await pass(e, 2s);
        e.set("/gate", "written");
        co_await pass(e, 2s);
        e.expire(one);
        co_await pass(e, 20s);
        CHECK_FALSE(waits.ended());
        e.hold_down(one);
        co_await gate.remove();
        co_await gate.set();
        e.let_in(one);
        co_await pass(e, 20s);
        CHECK(waits.ended());
        waits.cancel();
        co_await waits.code();
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("latch: what was done stays done, also if an operator removes the reports") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const latch l(zk, "/latch", 2);
        co_await l.count_down("a");
        co_await l.count_down("b");
        e.remove("/latch/a");
        e.remove("/latch/b");
        const std::size_t left = co_await l.remaining();
        CHECK(left == 0);
        co_await l.wait();
        const std::size_t late = co_await l.count_down("c");
        CHECK(late == 0);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("latch: a wait outlives sessions that expire, and busy servers, at any step") {
    const auto play = [](std::size_t at) {
        INFO("at step " << at);
        fake_ensemble e;
        const client zk = e.client(calm()), other = e.client(calm());
        std::size_t steps = 0;
        auto body = [&]() -> asio::awaitable<void> {
            const latch ours(zk, "/latch", 1), theirs(other, "/latch", 1);
            co_await zk.connected();
            running waits(e.get_executor(), ours.wait());
            e.on_step([&](std::string_view) {
                if (steps++ != at) return;
                e.throttle(80);
                asio::post(e.context(), [&] { e.expire(zk); });
            });
            co_await pass(e, 25s);
            e.on_step(nullptr);
            CHECK_FALSE(waits.ended());
            e.throttle(0);
            co_await theirs.count_down("a");
            const std::exception_ptr failed = co_await waits.end();
            CHECK_FALSE(failed);
            co_await zk.close();
            co_await other.close();
        };
        e.run(body);
        return steps;
    };
    REQUIRE(play(1000) >= 4);
    for (std::size_t at = 0; at < 12; ++at) play(at);
}

TEST_CASE("barrier and latch: a wait ends with the only session of a client that opens no other") {
    fake_ensemble e;
    e.create("/gate");
    const client zk = e.client(calm().renewal(session_renewal::none));
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        running gate(e.get_executor(), barrier(zk, "/gate").wait());
        running counts(e.get_executor(), latch(zk, "/latch", 2).wait());
        for (int i = 0; i < 50; ++i) co_await asio::post(e.get_executor(), asio::use_awaitable);
        e.expire(zk);
        const std::error_code first = co_await gate.code(), second = co_await counts.code();
        CHECK(first == errc::session_expired);
        CHECK(second == errc::session_expired);
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace barrier_wait_tests
