#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// What operators do while a counter is in use: nodes deleted, permissions taken, locks removed.
namespace atomic_counter_operator_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

counter_options text() { return counter_options().format(kazoo_counter()); }

struct outcome {
    std::optional<std::int64_t> number;
    std::error_code code;
    bool unknown = false;
    std::string what;
};

asio::awaitable<outcome> add(atomic_counter to, std::int64_t delta) {
    outcome o;
    try {
        const std::int64_t number = co_await to.add(delta);
        o.number = number;
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
        o.what = e.what();
    }
    co_return o;
}

void remove_tree(fake_ensemble& e, const std::string& path) {
    for (const std::string& name : e.children(path)) remove_tree(e, path + "/" + name);
    if (e.exists(path)) e.remove(path);
}

}  // namespace

TEST_CASE("atomic_counter: node and parents deleted at any step: each addition is made, of the old number or from 0") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t at, bool elsewhere, std::uint64_t seed) {
        INFO("deleted at step " << at << ", seed " << seed << (elsewhere ? ", receipts elsewhere" : ""));
        fake_ensemble e(seed);
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const atomic_counter c(zk, "/deep/down/n", elsewhere ? text().receipts("/r/s") : text());
            at_step(e, steps, at, [&] {
                remove_tree(e, "/deep");
                remove_tree(e, "/r");
            });
            std::int64_t last = 0;
            for (int i = 0; i < 4; ++i) {
                const outcome o = co_await add(c, 1);
                INFO(o.what);
                REQUIRE(o.number);
                CHECK((o.number == last + 1 || o.number == 1));
                last = *o.number;
            }
            e.on_step(nullptr);
            co_await zk.close();
        };
        e.run(body);
        return steps;
    };
    for (const bool elsewhere : {false, true})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
            const std::size_t most = play(1000, elsewhere, seed);
            for (std::size_t at = 0; at <= most; ++at) play(at, elsewhere, seed);
        }
}

TEST_CASE("atomic_counter: permissions taken at any step, with a lost answer or without: what is told adds up") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t at, const char* lost, std::uint64_t seed) {
        INFO("refused from step " << at << ", lost \"" << lost << "\", seed " << seed);
        fake_ensemble e(seed);
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const atomic_counter c(zk, "/n", text());
            co_await add(c, 1);
            if (*lost) e.lose_answer(zk, lost);
            at_step(e, steps, at, [&] { e.refuse("/n", zk_errc::no_auth); });
            std::int64_t certain = 1, unknown = 0;
            for (int i = 0; i < 3; ++i) {
                const outcome o = co_await add(c, 1);
                INFO(o.what);
                if (!o.number) CHECK(o.code == zk_errc::no_auth);
                certain += o.number.has_value();
                unknown += o.unknown;
            }
            e.on_step(nullptr);
            e.accept("/n");
            const outcome after = co_await add(c, 1);
            REQUIRE(after.number);
            CHECK(*after.number > certain);
            CHECK(*after.number <= certain + unknown + 1);
            co_await zk.close();
        };
        e.run(body);
        return steps;
    };
    for (const char* lost : {"", "multi"}) {
        const std::size_t most = play(1000, lost, 1);
        for (std::size_t at = 0; at <= most; ++at) play(at, lost, 1 + at % 3);
    }
}

TEST_CASE("atomic_counter: an operator removes the contenders of the lock that a writer waits for or has") {
    for (std::size_t at = 0; at < 60; at += 1) {
        INFO("removed at step " << at);
        fake_ensemble e(1 + at % 5);
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const auto options = [] { return text().promote_to("/lock").tries(0); };
            const atomic_counter a(one, "/n", options()), b(two, "/n", options());
            int done = 0;
            const auto some = [&](const atomic_counter& to) -> asio::awaitable<void> {
                for (int i = 0; i < 4; ++i) {
                    const outcome o = co_await add(to, 1);
                    INFO(o.what);
                    CHECK(o.number);
                    done += o.number.has_value();
                }
            };
            std::size_t step = 0;
            at_step(e, step, at, [&] {
                for (const std::string& name : e.children("/lock")) e.remove("/lock/" + name);
            });
            running x(e.get_executor(), some(a)), y(e.get_executor(), some(b));
            co_await x.end();
            co_await y.end();
            e.on_step(nullptr);
            CHECK(e.data("/n") == std::to_string(done));
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: after a conflict the newest number is read, also on a server that lags behind") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        const client zk = e.client(calm()), other = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const atomic_counter ours(zk, "/n", text()), theirs(other, "/n", text());
            co_await add(ours, 1);
            for (int i = 0; i < 3; ++i) {
                co_await add(theirs, 1);
                int writes = 0;
                e.on_step([&](std::string_view s) { writes += s.find("apply 0: multi") != std::string_view::npos; });
                const outcome o = co_await add(ours, 1);
                e.on_step(nullptr);
                CHECK(o.number == 2 * i + 3);
                CHECK(writes == 2);
            }
            co_await zk.close();
            co_await other.close();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: a format that throws fails the additions of one write, and the counter goes on") {
    fake_ensemble e;
    const client zk = e.client(calm());
    bool broken = false;
    const auto print = [&](std::int64_t n) {
        if (broken) throw std::runtime_error("no ink");
        return std::to_string(n);
    };
    const config_format<std::int64_t> format(kazoo_counter().parse(), print);
    auto body = [&]() -> asio::awaitable<void> {
        const atomic_counter c(zk, "/n", counter_options().format(format));
        co_await add(c, 1);
        broken = true;
        int failures = 0;
        const auto one = [&]() -> asio::awaitable<void> {
            try {
                co_await c.add(1);
            } catch (const std::runtime_error& x) {
                failures += std::string_view(x.what()) == "no ink";
            }
        };
        running x(e.get_executor(), one()), y(e.get_executor(), one()), z(e.get_executor(), one());
        co_await x.end();
        co_await y.end();
        co_await z.end();
        CHECK(failures == 3);
        broken = false;
        const outcome again = co_await add(c, 1);
        CHECK(again.number == 2);
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace atomic_counter_operator_tests
