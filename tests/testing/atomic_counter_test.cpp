#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace atomic_counter_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct added {
    std::optional<std::int64_t> number;
    std::error_code code;
    bool unknown = false;
};

asio::awaitable<added> add(atomic_counter to, std::int64_t delta) {
    added a;
    try {
        a.number = co_await to.add(delta);
    } catch (const error& e) {
        a.code = e.code();
        a.unknown = e.outcome_unknown();
    }
    co_return a;
}

counter_options text() { return counter_options().format(kazoo_counter()); }

}  // namespace

TEST_CASE("atomic_counter: a lost answer of any write counts an addition once") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n", text());
    auto body = [&]() -> asio::awaitable<void> {
        std::int64_t expected = 0;
        for (const char* request : {"create", "multi", "multi", "get", "set"}) {
            e.lose_answer(zk, request);
            const added a = co_await add(c, 2);
            CHECK(a.number == (expected += 2));
            CHECK(e.data("/n") == std::to_string(expected));
        }
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: a cut at any step counts each addition once") {
    std::size_t steps = 0;
    const auto play = [&](std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO("cuts after " << first << " and " << second << " steps, seed " << seed);
        fake_ensemble e(seed);
        const client one = e.client(calm()), two = e.client(calm());
        const atomic_counter ours(one, "/n", text()), theirs(two, "/n", text());
        std::size_t step = 0;
        auto body = [&]() -> asio::awaitable<void> {
            cut_at_steps(e, one, two, first, second, step);
            std::int64_t done = 0;
            const auto add_some = [&](const atomic_counter& to) -> asio::awaitable<void> {
                for (int i = 0; i < 3; ++i) {
                    const added a = co_await add(to, 1);
                    done += a.number.has_value();
                }
            };
            running a(e.get_executor(), add_some(ours)), b(e.get_executor(), add_some(theirs));
            co_await a.end();
            co_await b.end();
            e.on_step(nullptr);
            CHECK(done == 6);
            CHECK(e.data("/n") == "6");
            co_await one.close();
            co_await two.close();
        };
        e.run(body);
        return step;
    };
    steps = play(1000, 0, 1);
    REQUIRE(steps > 10);
    for (std::size_t first = 0; first < steps; ++first)
        for (std::size_t second = 0; second < 6; ++second) play(first, second, 1 + first % 3);
}

TEST_CASE("atomic_counter: what one process adds at the same time is one write, in order") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n", text()), same(zk, "/n", text());
    auto body = [&]() -> asio::awaitable<void> {
        co_await add(c, 1);
        const std::size_t before = e.requests(zk);
        std::vector<std::int64_t> numbers(100);
        const auto one = [&](const atomic_counter& to, std::size_t i) -> asio::awaitable<void> {
            const added a = co_await add(to, 1);
            numbers[i] = a.number.value_or(0);
        };
        std::vector<running> all;
        for (std::size_t i = 0; i < numbers.size(); ++i) all.emplace_back(e.get_executor(), one(i % 2 ? c : same, i));
        for (running& r : all) co_await r.end();
        for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == static_cast<std::int64_t>(i) + 2);
        CHECK(e.requests(zk) - before <= 3);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: an addition that 64 bits do not hold is refused alone") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n");
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    auto body = [&]() -> asio::awaitable<void> {
        const bool made = co_await c.initialize(most - 1);
        CHECK(made);
        std::vector<added> told(3);
        const auto one = [&](std::size_t i, std::int64_t delta) -> asio::awaitable<void> {
            told[i] = co_await add(c, delta);
        };
        std::vector<running> all;
        all.emplace_back(e.get_executor(), one(0, 1));
        all.emplace_back(e.get_executor(), one(1, 1));
        all.emplace_back(e.get_executor(), one(2, -3));
        for (running& r : all) co_await r.end();
        CHECK(told[0].number == most);
        CHECK(told[1].code == std::errc::result_out_of_range);
        CHECK_FALSE(told[1].unknown);
        CHECK(told[2].number == most - 3);
        const added low = co_await add(c, std::numeric_limits<std::int64_t>::min());
        CHECK(low.number == -4);
        const added lower = co_await add(c, std::numeric_limits<std::int64_t>::min());
        CHECK(lower.code == std::errc::result_out_of_range);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: foreign data are refused, and stay") {
    fake_ensemble e;
    e.create("/n", "what is this");
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n");
    auto body = [&]() -> asio::awaitable<void> {
        std::string said;
        try {
            co_await c.add(1);
        } catch (const error& x) {
            CHECK(x.code() == errc::invalid_argument);
            CHECK_FALSE(x.outcome_unknown());
            said = x.what();
        }
        CHECK(said == "add /n: invalid argument (its data is no counter's: 12 bytes are no number of 8 bytes)");
        CHECK(e.data("/n") == "what is this");
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: a node that an operator deletes begins again at 0") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/deep/n", text().receipts("/receipts"));
    auto body = [&]() -> asio::awaitable<void> {
        const added first = co_await add(c, 5);
        CHECK(first.number == 5);
        e.remove("/deep/n");
        const std::int64_t missing = co_await c.get();
        CHECK(missing == 0);
        const added again = co_await add(c, 2);
        CHECK(again.number == 2);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: an addition is made in the next session if none was asked for, and else unknown") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n", text());
    auto body = [&]() -> asio::awaitable<void> {
        co_await add(c, 1);
        std::optional<added> first, second;
        const auto one = [&](std::optional<added>& told) -> asio::awaitable<void> { told = co_await add(c, 1); };
        e.lose_answer(zk, "multi");
        bool seen = false;
        e.on_step([&](std::string_view step) {
            if (seen || step.find("multi") == std::string_view::npos) return;
            seen = true;
            asio::post(e.context(), [&] { e.expire(zk); });
        });
        running a(e.get_executor(), one(first));
        co_await asio::post(e.get_executor(), asio::use_awaitable);
        co_await asio::post(e.get_executor(), asio::use_awaitable);
        running b(e.get_executor(), one(second));
        co_await a.end();
        co_await b.end();
        REQUIRE(first);
        REQUIRE(second);
        CHECK((first->number || (first->code == errc::session_expired && first->unknown)));
        CHECK(second->number);
        const std::int64_t n = co_await c.get();
        CHECK((n == 2 || n == 3));
        if (first->number) CHECK(n == 3);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: a cancelled addition that waits for its turn is not made") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const atomic_counter c(zk, "/n", text());
    auto body = [&]() -> asio::awaitable<void> {
        co_await add(c, 1);
        std::optional<added> told;
        const auto one = [&](std::int64_t delta) -> asio::awaitable<void> { told = co_await add(c, delta); };
        std::optional<running> waits;
        const auto begin = [&] { waits.emplace(e.get_executor(), one(100)); };
        const auto cancel = [&] { waits->cancel(); };
        e.on_step([&](std::string_view step) {
            if (waits || step.find("apply 0: multi") == std::string_view::npos) return;
            asio::post(e.context(), [&, begin] {
                begin();
                asio::post(e.context(), [&] { asio::post(e.context(), cancel); });
            });
        });
        const added under_way = co_await add(c, 10);
        CHECK(under_way.number == 11);
        e.on_step(nullptr);
        REQUIRE(waits);
        co_await waits->end();
        REQUIRE(told);
        CHECK(told->code == condition::cancelled);
        CHECK_FALSE(told->unknown);
        const std::int64_t n = co_await c.get();
        CHECK(n == 11);
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: the client's close ends an addition at any step, under that name") {
    std::size_t steps = 0;
    for (std::size_t at = 0; at <= steps; ++at) {
        INFO("close after " << at << " steps");
        fake_ensemble e;
        const client zk = e.client(calm()), other = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const atomic_counter c(zk, "/n", text()), theirs(other, "/n", text());
            std::size_t step = 0;
            std::optional<added> told;
            const auto one = [&]() -> asio::awaitable<void> { told = co_await add(c, 1); };
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { closes.emplace(e.get_executor(), close()); });
            });
            running adds(e.get_executor(), one());
            const added beside = co_await add(theirs, 1);
            CHECK(beside.number);
            co_await adds.end();
            e.on_step(nullptr);
            if (closes)
                co_await closes->end();
            else
                co_await zk.close();
            steps = std::max(steps, at == 0 ? 20 : step);
            REQUIRE(told);
            if (!told->number) CHECK(told->code == errc::client_closed);
            co_await other.close();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: compare_and_set under lost answers, and beside additions") {
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    const atomic_counter c(zk, "/n", text()), theirs(other, "/n", text());
    auto body = [&]() -> asio::awaitable<void> {
        e.lose_answer(zk, "multi");
        const bool set = co_await c.compare_and_set(0, 7);
        CHECK(set);
        const bool wrong = co_await c.compare_and_set(0, 9);
        CHECK_FALSE(wrong);
        const added a = co_await add(theirs, 1);
        CHECK(a.number == 8);
        const added b = co_await add(c, 1);
        CHECK(b.number == 9);
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("atomic_counter: writers of several processes that take turns") {
    fake_ensemble e;
    std::vector<client> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(e.client(calm()));
    auto body = [&]() -> asio::awaitable<void> {
        int done = 0;
        const auto add_some = [&](client zk) -> asio::awaitable<void> {
            const atomic_counter c(zk, "/n", text().promote_to("/n-lock").tries(1));
            for (int i = 0; i < 5; ++i) {
                const added a = co_await add(c, 1);
                done += a.number.has_value();
            }
        };
        std::vector<running> all;
        for (const client& zk : clients) all.emplace_back(e.get_executor(), add_some(zk));
        for (running& r : all) co_await r.end();
        CHECK(done == 25);
        CHECK(e.data("/n") == "25");
        for (const client& zk : clients) co_await zk.close();
    };
    e.run(body);
}

// A client that adds without a pause knows the number from its last write: one round trip. Another one has to read it
// first, and is late each time.
TEST_CASE("atomic_counter: a client has its turn beside one that adds all the time") {
    enum class busy {
        adds,
        sets
    };
    for (const busy how : {busy::adds, busy::sets}) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            INFO("sets: " << (how == busy::sets) << ", seed " << seed);
            fake_ensemble e(seed);
            const client near = e.client(calm()), far = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                const auto options = [] { return text().promote_to("/n-lock"); };
                const atomic_counter ours(near, "/n", options()), theirs(far, "/n", options());
                bool over = false;
                int made = 0;
                const auto add_all_the_time = [&]() -> asio::awaitable<void> {
                    while (!over && how == busy::adds) {
                        const added a = co_await add(ours, 1);
                        made += a.number.has_value();
                    }
                    while (!over) {
                        const std::int64_t now = co_await ours.get();
                        const bool set = co_await ours.compare_and_set(now, now + 1);
                        made += set;
                    }
                };
                std::vector<running> adding;
                for (int i = 0; i < (how == busy::adds ? 1 : 4); ++i)
                    adding.emplace_back(e.get_executor(), add_all_the_time());
                asio::steady_timer timer(e.context(), 1s);
                co_await timer.async_wait(asio::use_awaitable);
                for (int i = 1; i <= 5; ++i) {
                    const auto began = e.now();
                    const added a = co_await add(theirs, 1);
                    CHECK(a.number);
                    CHECK(e.now() - began < 1s);
                    for (const commit_stats& c : far.stats().commits)
                        CHECK(c.conflicts <= static_cast<std::uint64_t>(5 * i));
                }
                over = true;
                for (const running& r : adding) co_await r.end();
                CHECK(e.data("/n") == std::to_string(made + 5));
                const added last = co_await add(theirs, 1);  // the turns are over
                CHECK(last.number);
                std::uint64_t promoted = 0, promoted_before = far.stats().commits.front().promoted;
                for (int i = 0; i < 5; ++i) co_await add(theirs, 1);
                promoted = far.stats().commits.front().promoted;
                CHECK(promoted == promoted_before);
                co_await near.close();
                co_await far.close();
            };
            e.run(body, std::chrono::minutes(5));
        }
    }
}

TEST_CASE("atomic_counter: in its turn of promote_to(), a writer makes no pauses after conflicts") {
    for (const bool adds : {true, false}) {
        INFO((adds ? "add()" : "compare_and_set()"));
        fake_ensemble e;
        e.create("/n", "0");
        const client zk = e.client(calm());
        const atomic_counter c(zk, "/n", text().promote_to("/turns").tries(0));
        int conflicts = 0;
        e.on_step([&](std::string_view step) {
            if (step.find("deliver 0: get") == std::string_view::npos || e.children("/turns").empty()) return;
            if (++conflicts <= 4) e.set("/n", "0");  // between the read and the write
        });
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const auto begin = e.now();
            bool done = true;
            if (adds)
                co_await c.add(1);
            else
                done = co_await c.compare_and_set(0, 1);
            CHECK(done);
            CHECK(e.now() - begin < 20ms);
            CHECK(conflicts >= 4);
            CHECK(e.data("/n") == "1");
            e.on_step(nullptr);
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("atomic_counter: a child of promote_to()'s directory that is no contender makes nobody wait") {
    fake_ensemble e;
    e.create("/n-lock/note", "of an operator");
    const client zk = e.client(calm());
    e.run([&]() -> asio::awaitable<void> {
        const atomic_counter n(zk, "/n", text().promote_to("/n-lock"));
        for (int i = 1; i <= 3; ++i) {
            const added a = co_await add(n, 1);
            CHECK(a.number == i);
            const bool set = co_await n.compare_and_set(i, i);
            CHECK(set);
        }
        CHECK(zk.stats().commits.front().promoted == 0);
    });
}

TEST_CASE("id_allocator: no id twice, over cuts, and one request for a block") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        std::set<std::uint64_t> all;
        std::size_t taken = 0;
        const auto take = [&](client zk, std::size_t n) -> asio::awaitable<void> {
            const id_allocator ids(zk, "/ids", id_options().block(10));
            std::uint64_t last = 0;
            for (std::size_t i = 0; i < n; ++i) {
                if (i % 17 == 5) e.lose_answer(zk, "set");
                const std::uint64_t id = co_await ids.next();
                CHECK((i == 0 || id > last));
                last = id;
                all.insert(id);
                ++taken;
            }
        };
        running a(e.get_executor(), take(one, 100)), b(e.get_executor(), take(two, 100));
        co_await a.end();
        co_await b.end();
        CHECK(taken == 200);
        CHECK(all.size() == 200);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
}

TEST_CASE("id_allocator: blocks of another size, foreign data and a re-created node are refused") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const auto failure = [&](const id_allocator& ids) -> asio::awaitable<std::string> {
            try {
                co_await ids.next();
            } catch (const error& x) {
                co_return x.what();
            }
            co_return "";
        };
        const id_allocator ids(zk, "/a/ids", id_options().block(1));
        for (std::uint64_t i = 0; i < 5; ++i) {
            const std::uint64_t id = co_await ids.next();
            CHECK(id == i);
        }
        const id_allocator tens(zk, "/a/ids", id_options().block(10));
        const std::string other_size = co_await failure(tens);
        CHECK(other_size ==
              "next /a/ids: invalid argument (its data is \"blocks of 1 ids\", and not \"blocks of 10 ids\")");
        co_await zk.idle();
        e.remove("/a/ids");
        e.create("/a/ids", "blocks of 1 ids");
        std::string recreated;
        for (int i = 0; i < 3 && recreated.empty(); ++i) recreated = co_await failure(ids);
        INFO(recreated);
        CHECK(recreated.starts_with("next /a/ids: inconsistent data (the node was deleted and re-created"));
        CHECK_THROWS_AS(id_options().block(0), error);
        const std::int32_t first = co_await next_number(zk, "/b/numbers");
        const std::int32_t second = co_await next_number(zk, "/b/numbers");
        CHECK(first == 1);
        CHECK(second == 2);
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace atomic_counter_tests
