#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/barriers/latch.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace barrier_faults_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct outcome {
    std::optional<bool> closed;
    std::error_code code;
    bool unknown = false;
};

asio::awaitable<outcome> set(barrier gate) {
    outcome o;
    try {
        const bool closed = co_await gate.set();
        o.closed = closed;
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
    }
    co_return o;
}

}  // namespace

TEST_CASE("barrier: set() that is cancelled, expired or closed at any step tells whether it may have closed the gate") {
    enum class end {
        cancel,
        expire,
        close
    };
    const auto play = [](end how, const char* lost, std::size_t at) {
        INFO("ended at step " << at << " by " << static_cast<int>(how) << ", lost \"" << lost << "\"");
        fake_ensemble e;
        const client zk = e.client(calm());
        std::size_t steps = 0;
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            if (*lost) e.lose_answer(zk, lost);
            std::optional<outcome> told;
            const auto one = [&]() -> asio::awaitable<void> { told = co_await set(barrier(zk, "/deep/gate")); };
            running r(e.get_executor(), one());
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            at_step(e, steps, at, [&] {
                if (told) return;
                if (how == end::cancel) r.cancel();
                if (how == end::expire) e.expire(zk);
                if (how == end::close) closes.emplace(e.get_executor(), close());
            });
            const std::exception_ptr raw = co_await r.end();
            const std::size_t taken = steps;
            e.on_step(nullptr);
            if (closes)
                co_await closes->end();
            else
                co_await zk.close();
            steps = taken;
            CHECK_FALSE(raw);
            REQUIRE(told);
            INFO(told->code.message());
            if (told->closed) CHECK(*told->closed);
            if (e.exists("/deep/gate")) CHECK((told->closed || told->unknown));
            if (told->closed) CHECK(e.exists("/deep/gate"));
        };
        e.run(body);
        return steps;
    };
    for (const end how : {end::cancel, end::expire, end::close})
        for (const char* lost : {"", "create /deep/gate", "get"}) {
            const std::size_t steps = play(how, lost, 1000);
            REQUIRE(steps >= 4);
            for (std::size_t at = 0; at <= steps; ++at) play(how, lost, at);
        }
}

TEST_CASE("barrier: of several clients that close the gate at the same time, over cuts, one has closed it") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        e.lose_connections(10);
        e.throttle(10);
        std::vector<client> clients;
        for (int i = 0; i < 3; ++i) clients.push_back(e.client(calm()));
        auto body = [&]() -> asio::awaitable<void> {
            int closed = 0;
            const auto one = [&](client zk) -> asio::awaitable<void> {
                const bool mine = co_await barrier(zk, "/gate").set();
                closed += mine;
            };
            std::vector<running> all;
            for (const client& zk : clients) all.emplace_back(e.get_executor(), one(zk));
            for (running& r : all) {
                const std::exception_ptr failed = co_await r.end();
                CHECK_FALSE(failed);
            }
            CHECK(closed == 1);
            e.lose_connections(0);
            e.throttle(0);
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("latch: two last comers, cut at any step, and whoever waits goes on") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO("cuts at steps " << first << " and " << first + second << ", seed " << seed);
        fake_ensemble e(seed);
        e.lag();
        const client one = e.client(calm()), two = e.client(calm()), three = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const latch a(one, "/latch", 3), b(two, "/latch", 3), c(three, "/latch", 3);
            co_await c.count_down("c");
            running waits(e.get_executor(), c.wait());
            std::size_t step = 0;
            cut_at_steps(e, one, two, first, second, step);
            std::vector<std::size_t> missing;
            const auto last = [&](const latch& l, std::string id) -> asio::awaitable<void> {
                const std::size_t left = co_await l.count_down(id);
                missing.push_back(left);
            };
            running x(e.get_executor(), last(a, "a")), y(e.get_executor(), last(b, "b"));
            co_await x.end();
            co_await y.end();
            steps = step;
            REQUIRE(missing.size() == 2);
            CHECK(std::min(missing[0], missing[1]) == 0);
            CHECK(e.exists("/latch/done"));
            const auto before = e.now();
            const std::exception_ptr failed = co_await waits.end();
            CHECK_FALSE(failed);
            CHECK(e.now() - before < 5s);  // told by `done`
            e.on_step(nullptr);
            for (const client& zk : {one, two, three}) co_await zk.close();
        };
        e.run(body);
        return steps;
    };
    const std::size_t most = play(1000, 0, 1);
    REQUIRE(most >= 6);
    for (std::size_t first = 0; first < most; ++first)
        for (std::size_t second = 0; second < 6; ++second) play(first, second, 1 + (first + second) % 3);
}

TEST_CASE("latch: the last comer is cancelled or expires at any step, says what it knows, and a second call is safe") {
    const auto play = [](bool expire, std::size_t at) {
        INFO((expire ? "expired" : "cancelled") << " at step " << at);
        fake_ensemble e;
        const client zk = e.client(calm()), other = e.client(calm());
        std::size_t steps = 0;
        auto body = [&]() -> asio::awaitable<void> {
            const latch ours(zk, "/latch", 2), theirs(other, "/latch", 2);
            co_await theirs.count_down("a");
            co_await zk.connected();
            running waits(e.get_executor(), theirs.wait());
            e.lose_answer(zk, "create");
            std::optional<std::size_t> missing;
            const auto last = [&]() -> asio::awaitable<void> {
                try {
                    const std::size_t left = co_await ours.count_down("b");
                    missing = left;
                } catch (const error& x) {
                    // An error of another operation tells that the report was made, and its count is missing.
                    if (x.operation() == "create_unless_exists" && e.exists("/latch/b")) CHECK(x.outcome_unknown());
                }
            };
            running r(e.get_executor(), last());
            at_step(e, steps, at, [&] {
                if (r.ended()) return;
                if (expire) e.expire(zk);
                if (!expire) r.cancel();
            });
            const std::exception_ptr raw = co_await r.end();
            const std::size_t taken = steps;
            e.on_step(nullptr);
            CHECK_FALSE(raw);
            if (missing) CHECK(missing == 0);
            const std::size_t none = co_await theirs.count_down("b");
            CHECK(none == 0);
            CHECK(e.children("/latch").size() == 3);
            const std::exception_ptr failed = co_await waits.end();
            CHECK_FALSE(failed);
            co_await zk.close();
            co_await other.close();
            steps = taken;
        };
        e.run(body);
        return steps;
    };
    for (const bool expire : {false, true}) {
        const std::size_t most = play(expire, 1000);
        REQUIRE(most >= 4);
        for (std::size_t at = 0; at <= most; ++at) play(expire, at);
    }
}

TEST_CASE("latch: a client that may only read sees that nothing is missing, and waits") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        create_options readable;
        readable.acl(acl_of(acl_entry(permission::read, anyone())));
        co_await zk.create("/latch", bytes(), readable);
        const latch l(zk, "/latch", 1);
        running waits(e.get_executor(), l.wait());
        for (int i = 0; i < 50; ++i) co_await asio::post(e.get_executor(), asio::use_awaitable);
        CHECK_FALSE(waits.ended());
        e.create("/latch/a");
        const std::size_t none = co_await l.remaining();
        CHECK(none == 0);
        const std::exception_ptr failed = co_await waits.end();
        CHECK_FALSE(failed);
        CHECK_FALSE(e.exists("/latch/done"));
        const std::error_code refused = co_await code_of(l.count_down("b"));
        CHECK(refused == zk_errc::no_auth);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("latch: remaining() only reads, and names that no node can have are no ids") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const latch l(zk, "/latch", 1);
        e.create("/latch/a");
        const std::size_t none = co_await l.remaining();
        CHECK(none == 0);
        CHECK_FALSE(e.exists("/latch/done"));
        for (const char* id : {".", "..", "\x01"}) {
            const std::error_code refused = co_await code_of(l.count_down(id));
            CHECK(refused == errc::invalid_argument);
        }
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("barrier and latch: what was moved from refuses everything", "[moved]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        barrier gate(zk, "/gate");
        const barrier to = std::move(gate);
        latch l(zk, "/latch", 1);
        const latch also = std::move(l);
        std::vector<std::error_code> codes;
        codes.push_back(co_await code_of(gate.set()));
        codes.push_back(co_await code_of(gate.remove()));
        codes.push_back(co_await code_of(gate.is_set()));
        codes.push_back(co_await code_of(gate.wait()));
        codes.push_back(co_await code_of(l.count_down("a")));
        codes.push_back(co_await code_of(l.remaining()));
        codes.push_back(co_await code_of(l.wait()));
        for (const std::error_code& code : codes) CHECK(code == errc::invalid_argument);
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace barrier_faults_tests
