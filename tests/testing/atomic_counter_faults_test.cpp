#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atomic_counter_faults_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

counter_options text() { return counter_options().format(kazoo_counter()); }

struct outcome {
    std::optional<std::int64_t> number;  // of compare_and_set(): 0 or 1
    std::error_code code;
    bool unknown = false;
    std::string what;
};

template <class T>
asio::awaitable<outcome> outcome_of(asio::awaitable<T> operation) {
    outcome o;
    try {
        const T result = co_await std::move(operation);
        o.number = static_cast<std::int64_t>(result);
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
        o.what = e.what();
    }
    co_return o;
}

// Calls `f` once, at the next step that contains `text`.
void at(fake_ensemble& e, std::string text, std::function<void()> f) {
    e.on_step([&e, text = std::move(text), f = std::move(f), done = false](std::string_view step) mutable {
        if (done || step.find(text) == std::string_view::npos) return;
        done = true;
        asio::post(e.context(), f);
    });
}

void remove_with_children(fake_ensemble& e, const std::string& path) {
    for (const std::string& name : e.children(path)) e.remove(path + "/" + name);
    e.remove(path);
}

}  // namespace

TEST_CASE("atomic_counter: an addition is not refused because of a number that another client has made smaller") {
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    const atomic_counter ours(zk, "/n"), theirs(other, "/n");
    auto body = [&]() -> asio::awaitable<void> {
        const outcome full = co_await outcome_of(ours.add(most));
        CHECK(full.number == most);
        const outcome lower = co_await outcome_of(theirs.add(-10));
        CHECK(lower.number == most - 10);
        const outcome again = co_await outcome_of(ours.add(1));
        CHECK(again.number == most - 9);

        co_await theirs.add(9);
        co_await ours.add(-1);
        co_await ours.add(1);
        co_await theirs.add(-10);
        std::vector<outcome> told(2);
        const auto one = [&](std::size_t i, std::int64_t delta) -> asio::awaitable<void> {
            told[i] = co_await outcome_of(ours.add(delta));
        };
        running a(e.get_executor(), one(0, 5)), b(e.get_executor(), one(1, -1));
        co_await a.end();
        co_await b.end();
        CHECK(told[0].number == most - 5);
        CHECK(told[1].number == most - 6);
        const outcome refused = co_await outcome_of(ours.add(7));
        CHECK(refused.code == std::errc::result_out_of_range);
        CHECK_FALSE(refused.unknown);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: a refusal is behind a sync, also on a server that lags behind") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        const client zk = e.client(calm()), other = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const atomic_counter ours(zk, "/n"), theirs(other, "/n");
            co_await ours.add(most);
            for (int i = 0; i < 4; ++i) {
                co_await theirs.add(-1);
                const outcome o = co_await outcome_of(ours.add(1));
                CHECK(o.number == most);
            }
            co_await zk.close();
            co_await other.close();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: a node that was re-created, and written as often as before, is not overwritten") {
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const atomic_counter ours(zk, "/n", text());
        co_await ours.add(1);
        remove_with_children(e, "/n");
        {
            const atomic_counter theirs(other, "/n", text());
            co_await theirs.add(100);
        }
        const outcome o = co_await outcome_of(ours.add(1));
        CHECK(o.number == 101);
        CHECK(e.data("/n") == "101");
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: a receipt does not bring a deleted node back") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n", text());
    auto body = [&]() -> asio::awaitable<void> {
        e.on_step([&, done = false](std::string_view step) mutable {
            if (done || step.find("deliver 0: create /n") == std::string_view::npos) return;
            done = true;
            e.remove("/n");
        });
        const outcome o = co_await outcome_of(c.add(3));
        e.on_step(nullptr);
        CHECK(o.number == 3);
        CHECK(e.data("/n") == "3");
        co_await zk.close();
    };
    e.run(body);
    e.run_for(std::chrono::hours(1));  // a container without children would go
    CHECK(e.data("/n") == "3");
}

TEST_CASE("atomic_counter: tries(0) takes the lock for each write") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const auto locks_with = [&](int tries) -> asio::awaitable<bool> {
        const atomic_counter c(zk, "/n", text().promote_to("/lock" + std::to_string(tries)).tries(tries));
        co_await c.add(1);
        co_return e.exists("/lock" + std::to_string(tries));
    };
    auto body = [&]() -> asio::awaitable<void> {
        const bool none = co_await locks_with(0);
        co_await zk.idle();
        CHECK(none);
        const bool one = co_await locks_with(1);
        CHECK_FALSE(one);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: an addition that close() ends before its write was sent is not unknown") {
    for (const char* request : {"get /n", "create /n", "create /n/_r-", "multi"}) {
        INFO("close at " << request);
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const atomic_counter c(zk, "/n", text());
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            at(e, std::string("apply 0: ") + request, [&] { closes.emplace(e.get_executor(), close()); });
            const outcome o = co_await outcome_of(c.add(1));
            e.on_step(nullptr);
            INFO(o.what);
            CHECK(o.code == errc::client_closed);
            CHECK(o.unknown == (request == std::string("multi")));
            REQUIRE(closes);
            co_await closes->end();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: two counters of one session, and their receipts in one directory, under cuts") {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lose_connections(3);
        const client zk = e.client(calm()), other = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const auto options = [] { return text().receipts("/receipts"); };
            const atomic_counter a(zk, "/a", options()), b(zk, "/b", options()), too(other, "/a", options());
            int done = 0;
            const auto some = [&](const atomic_counter& to, std::int64_t delta) -> asio::awaitable<void> {
                for (int i = 0; i < 5; ++i) {
                    const outcome o = co_await outcome_of(to.add(delta));
                    INFO(o.what);
                    CHECK(o.number);
                    done += o.number.has_value();
                }
            };
            std::vector<running> all;
            for (int i = 0; i < 2; ++i)
                for (const atomic_counter* to : {&a, &b, &too}) all.emplace_back(e.get_executor(), some(*to, i + 1));
            for (running& r : all) co_await r.end();
            e.lose_connections(0);
            CHECK(done == 30);
            CHECK(e.data("/a") == "30");
            CHECK(e.data("/b") == "15");
            co_await zk.close();
            co_await other.close();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: sessions that expire, servers that are busy, an operator: what is told adds up") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const auto options = [&] {
                return seed % 2 ? text() : text().promote_to("/lock").tries(static_cast<int>(seed % 3));
            };
            const atomic_counter a(one, "/n", options()), b(two, "/n", options());
            std::int64_t certain = 0, unknown = 0;
            std::size_t step = 0;
            e.on_step([&](std::string_view) {
                ++step;
                if (step % (17 + seed) == 0) asio::post(e.context(), [&] { e.cut(one); });
                if (step == 20 + seed) asio::post(e.context(), [&] { e.expire(two); });
                if (step == 30 + 2 * seed)
                    asio::post(e.context(), [&] {
                        for (const std::string& name : e.children("/n")) e.remove("/n/" + name);
                    });
            });
            e.throttle(10);
            const auto some = [&](const atomic_counter& to) -> asio::awaitable<void> {
                for (int i = 0; i < 8; ++i) {
                    const outcome o = co_await outcome_of(to.add(1));
                    INFO(o.what);
                    CHECK((o.number || o.unknown));
                    certain += o.number.has_value();
                    unknown += o.unknown;
                }
            };
            std::vector<running> all;
            for (const atomic_counter* to : {&a, &b, &a}) all.emplace_back(e.get_executor(), some(*to));
            for (running& r : all) co_await r.end();
            e.on_step(nullptr);
            e.throttle(0);
            const std::int64_t number = std::stoll(*e.data("/n"));
            CHECK(number >= certain);
            CHECK(number <= certain + unknown);
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: a counter that is made again, with receipts elsewhere, after many others in one session") {
    for (int others = 0; others < 24; ++others) {
        INFO(others << " others");
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            for (int i = 0; i <= others; ++i) {
                const atomic_counter c(zk, i ? "/other" + std::to_string(i) : "/n", text().receipts("/old"));
                co_await c.add(1);
            }
            const atomic_counter c(zk, "/n", text().receipts("/new")), same(zk, "/n", text().receipts("/new"));
            co_await c.add(1);
            const std::size_t before = e.requests(zk);
            const auto one = [](atomic_counter to) -> asio::awaitable<void> { co_await to.add(1); };
            running first(e.get_executor(), one(c)), second(e.get_executor(), one(same)),
                third(e.get_executor(), one(c));
            co_await first.end();
            co_await second.end();
            co_await third.end();
            CHECK(e.data("/n") == "5");
            CHECK(e.requests(zk) - before == 2);  // the first addition, and the other two together
            co_await zk.close();
        };
        e.run(body);
    }
}

}  // namespace atomic_counter_faults_tests
