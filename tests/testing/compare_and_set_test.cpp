#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace compare_and_set_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

counter_options text() { return counter_options().format(kazoo_counter()); }

struct outcome {
    std::optional<bool> result;
    std::error_code code;
    bool unknown = false;
    std::string what;
};

asio::awaitable<outcome> outcome_of(asio::awaitable<bool> operation) {
    outcome o;
    try {
        const bool result = co_await std::move(operation);
        o.result = result;
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
        o.what = e.what();
    }
    co_return o;
}

}  // namespace

TEST_CASE("compare_and_set: compares with the newest number, also on a server that lags behind") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        const client zk = e.client(calm()), other = e.client(calm());
        const atomic_counter ours(zk, "/n", text()), theirs(other, "/n", text());
        auto body = [&]() -> asio::awaitable<void> {
            co_await ours.add(1);
            for (int i = 0; i < 5; ++i) {
                const std::int64_t number = co_await theirs.add(1);
                const bool set = co_await ours.compare_and_set(number, number + 10);
                CHECK(set);
                const bool again = co_await ours.compare_and_set(number, number + 20);
                CHECK_FALSE(again);
            }
            co_await zk.close();
            co_await other.close();
        };
        e.run(body);
    }
}

TEST_CASE("compare_and_set: by two clients, cut at any step, with lost answers: each number once") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t cut_at, const char* lost, std::uint64_t seed) {
        INFO("cut at step " << cut_at << ", lost " << lost << ", seed " << seed);
        fake_ensemble e(seed);
        const client one = e.client(calm()), two = e.client(calm());
        const atomic_counter ours(one, "/n", text()), theirs(two, "/n", text());
        std::size_t step = 0;
        auto body = [&]() -> asio::awaitable<void> {
            e.lose_answer(one, lost);
            e.on_step([&](std::string_view) {
                if (step++ == cut_at) asio::post(e.context(), [&] { e.cut(step % 2 ? one : two); });
            });
            int set = 0;
            const auto race = [&](const atomic_counter& c) -> asio::awaitable<void> {
                for (std::int64_t n = 0; n < 4; ++n) {
                    const outcome o = co_await outcome_of(c.compare_and_set(n, n + 1));
                    INFO(o.what);
                    CHECK(o.result);
                    set += o.result == true;
                    if (o.result == false) {
                        const std::int64_t now = co_await c.get();
                        if (now < n) --n;  // not yet
                    }
                }
            };
            running a(e.get_executor(), race(ours)), b(e.get_executor(), race(theirs));
            co_await a.end();
            co_await b.end();
            e.on_step(nullptr);
            CHECK(set == 4);
            CHECK(e.data("/n") == "4");
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    };
    for (const char* lost : {"create /n", "multi", "sync", "get"}) {
        play(1000, lost, 1);
        steps = 40;
        for (std::size_t at_step = 0; at_step < steps; ++at_step) play(at_step, lost, 1 + at_step % 3);
    }
}

TEST_CASE("atomic_counter: initialize() with a lost answer says so, and a second call is told that there is a node") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n", text());
    auto body = [&]() -> asio::awaitable<void> {
        e.lose_answer(zk, "create");
        const outcome o = co_await outcome_of(c.initialize(5));
        CHECK(o.code == zk_errc::connection_loss);
        CHECK(o.unknown);
        const outcome again = co_await outcome_of(c.initialize(6));
        CHECK(again.result == false);
        CHECK(e.data("/n") == "5");
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("compare_and_set: the receipt of one call serves the next") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const atomic_counter c(zk, "/n", text());
        co_await c.compare_and_set(0, 1);
        co_await zk.idle();
        const std::size_t before = e.requests(zk);
        const bool set = co_await c.compare_and_set(1, 2);
        CHECK(set);
        co_await zk.idle();
        CHECK(e.requests(zk) - before == 2);  // a read and a write
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: an addition that is cancelled at any step tells whether it may be made") {
    const auto play = [](const char* lost, std::size_t at) {
        INFO("cancelled at step " << at << ", lost \"" << lost << "\"");
        fake_ensemble e;
        const client zk = e.client(calm());
        std::size_t steps = 0;
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const atomic_counter c(zk, "/n", text());
            if (*lost) e.lose_answer(zk, lost);
            std::error_code code;
            bool unknown = false;
            const auto one = [&]() -> asio::awaitable<void> {
                try {
                    co_await c.add(1);
                } catch (const error& x) {
                    code = x.code();
                    unknown = x.outcome_unknown();
                }
            };
            running r(e.get_executor(), one());
            e.on_step([&](std::string_view) {
                if (steps++ == at) asio::post(e.context(), [&] { r.cancel(); });
            });
            const std::exception_ptr raw = co_await r.end();
            const std::size_t taken = steps;
            CHECK_FALSE(raw);
            co_await zk.idle();
            e.on_step(nullptr);
            steps = taken;
            const bool made = e.data("/n") == "1";
            if (code) CHECK(code == condition::cancelled);
            CHECK(made == (!code || unknown));
            co_await zk.close();
        };
        e.run(body);
        return steps;
    };
    for (const char* lost : {"", "multi", "create"}) {
        const std::size_t steps = play(lost, 1000);
        REQUIRE(steps >= 6);
        for (std::size_t at = 0; at <= steps; ++at) play(lost, at);
    }
}

TEST_CASE("compare_and_set: cancelled, expired or closed at any step, it tells whether it may have been made") {
    enum class event {
        cancel,
        expire,
        close
    };
    const auto play = [](event what, const char* lost, std::size_t at) {
        INFO("event " << static_cast<int>(what) << " at step " << at << ", lost \"" << lost << "\"");
        fake_ensemble e;
        const client zk = e.client(calm());
        std::size_t steps = 0;
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const atomic_counter c(zk, "/n", text());
            if (*lost) e.lose_answer(zk, lost);
            std::optional<outcome> told;
            const auto one = [&]() -> asio::awaitable<void> { told = co_await outcome_of(c.compare_and_set(0, 1)); };
            running r(e.get_executor(), one());
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            e.on_step([&](std::string_view) {
                if (steps++ != at) return;
                asio::post(e.context(), [&] {
                    if (told) return;
                    if (what == event::cancel) r.cancel();
                    if (what == event::expire) e.expire(zk);
                    if (what == event::close) closes.emplace(e.get_executor(), close());
                });
            });
            const std::exception_ptr raw = co_await r.end();
            const std::size_t taken = steps;
            if (closes)
                co_await closes->end();
            else
                co_await zk.close();
            e.on_step(nullptr);
            steps = taken;
            CHECK_FALSE(raw);
            REQUIRE(told);
            INFO(told->what);
            if (told->result) CHECK(*told->result);
            const bool made = e.data("/n") == "1";
            if (told->result) CHECK(made);
            if (made) CHECK((told->result || told->unknown));
        };
        e.run(body);
        return steps;
    };
    for (const event what : {event::cancel, event::expire, event::close})
        for (const char* lost : {"", "multi", "create"}) {
            const std::size_t steps = play(what, lost, 1000);
            REQUIRE(steps >= 6);
            for (std::size_t at = 0; at <= steps; ++at) play(what, lost, at);
        }
}

}  // namespace compare_and_set_tests
