// The options of with_lock(), over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

TEST_CASE("with_lock: a time limit covers the acquire and not the body", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock"), same(other, "/lock");
    int runs = 0;
    auto body = [&](lock_guard&) -> asio::awaitable<int> {
        co_await sleep_for(1min);
        co_return ++runs;
    };
    auto with_lock = [&]() -> asio::awaitable<int> {
        const int value = co_await lock.with_lock(body, with_lock_options().time_limit(5s));
        co_return value;
    };
    CHECK(ensemble.run(with_lock()) == 1);

    std::optional<lock_guard> guard;
    guard.emplace(ensemble.run(same.acquire()));
    const auto began = ensemble.now();
    CHECK(ensemble.run(code_of(with_lock())) == errc::timed_out);
    CHECK(ensemble.now() - began >= 5s);
    CHECK(ensemble.now() - began < 5100ms);
    CHECK(runs == 1);
    CHECK(ensemble.run(message_of(with_lock())) ==
          "with_lock /lock: timed out (the lock was not acquired in time: list_lock() says who holds it)");
    ensemble.run(zk.idle());
    CHECK(ensemble.children("/lock").size() == 1);
    guard.reset();
    CHECK(ensemble.run(with_lock()) == 2);

    ensemble.hold_down(zk);
    ensemble.run_for(1min);
    CHECK(ensemble.run(code_of(with_lock())) == errc::not_connected);
}

TEST_CASE("with_lock: takes the options of the acquire", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    std::vector<std::size_t> places;
    acquire_options how;
    how.survive_expiry().on_position([&](queue_position p) { places.push_back(p.ahead); });
    const mutex lock(zk, "/lock"), same(other, "/lock");
    std::optional<lock_guard> guard;
    guard.emplace(ensemble.run(same.acquire()));
    bool done = false;
    auto body = [&](lock_guard&) -> asio::awaitable<void> {
        done = true;
        co_return;
    };
    auto with_lock = [&]() -> asio::awaitable<void> { co_await lock.with_lock(body, how); };
    running waiting(ensemble.get_executor(), with_lock());
    ensemble.run_for(5s);
    ensemble.expire(zk);
    ensemble.run_for(20s);
    CHECK_FALSE(waiting.ended());  // stands again
    guard.reset();
    CHECK_FALSE(ensemble.run(waiting.code()));
    CHECK(done);
    REQUIRE_FALSE(places.empty());
    CHECK(places.front() == 1);

    // An owner's acquire within the body completes at once.
    const lock_owner me;
    auto inner = [](lock_guard&) -> asio::awaitable<void> { co_return; };
    auto outer = [&](lock_guard&) -> asio::awaitable<void> {
        co_await lock.with_lock(inner, acquire_options().owner(me));
    };
    auto nested = [&]() -> asio::awaitable<void> { co_await lock.with_lock(outer, acquire_options().owner(me)); };
    CHECK_FALSE(ensemble.run(code_of(nested())));
}

TEST_CASE("with_lock: readers and permits take the same options", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds()), other = ensemble.client(sessions_of_ten_seconds());
    const shared_mutex prices(zk, "/prices"), same_prices(other, "/prices");
    const semaphore pool(zk, "/pool", permits::fixed(1)), same_pool(other, "/pool", permits::fixed(1));
    std::optional<lock_guard> writer, permit;
    writer.emplace(ensemble.run(same_prices.acquire()));
    permit.emplace(ensemble.run(same_pool.acquire()));
    auto body = [](lock_guard&) -> asio::awaitable<void> { co_return; };
    auto read = [&]() -> asio::awaitable<void> {
        co_await prices.with_shared_lock(body, with_lock_options().time_limit(5s));
    };
    auto write = [&]() -> asio::awaitable<void> {
        co_await prices.with_lock(lock_kind::exclusive, body, with_lock_options().time_limit(5s));
    };
    auto take = [&]() -> asio::awaitable<void> { co_await pool.with_permit(body, with_lock_options().time_limit(5s)); };
    CHECK(ensemble.run(code_of(read())) == errc::timed_out);
    CHECK(ensemble.run(code_of(write())) == errc::timed_out);
    CHECK(ensemble.run(code_of(take())) == errc::timed_out);
    writer.reset();
    permit.reset();
    CHECK_FALSE(ensemble.run(code_of(read())));
    CHECK_FALSE(ensemble.run(code_of(write())));
    CHECK_FALSE(ensemble.run(code_of(take())));
}

TEST_CASE("with_lock: an empty awaitable is refused", "[testing]") {
    fake_ensemble ensemble;
    int runs = 0;
    auto body = [&](lock_guard&) -> asio::awaitable<void> {
        ++runs;
        co_return;
    };
    const std::string text = ensemble.run(message_of(with_lock(asio::awaitable<lock_guard>(), body)));
    CHECK(text == "with_lock: invalid argument (the operation is empty)");
    CHECK(runs == 0);
}
