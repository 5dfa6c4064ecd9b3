// Items of a take() that is cancelled while its request is under way.

#include "testing/work_queue_scene.hpp"

#include <zkasio/coroutines/timeout.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <string_view>

namespace work_queue_take_tests {

using namespace work_queue_scenes;

TEST_CASE("work_queue: no item is lost by a take() or try_take() with a time limit") {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        INFO("seed " << seed);
        scene s(seed);
        s.ensemble.lag(seed % 2 == 0);
        s.run([&]() -> asio::awaitable<void> {
            constexpr int n = 200;
            const work_queue q(s.zk, "/q");
            texts all;
            for (int i = 0; i < n; ++i) all.push_back(std::to_string(i));
            co_await q.put_all(all);
            std::mt19937 dice(static_cast<unsigned>(seed));
            std::multiset<std::string> got;
            int timeouts = 0;
            for (int idle = 0; idle < 10;) {
                const std::chrono::microseconds limit(dice() % 1500);
                bool has_got = false;
                try {
                    const work_queue again(s.zk, "/q");  // the next take() is that of another object
                    if (dice() % 4 == 0) {
                        std::optional<std::string> item = co_await timeout(limit, again.try_take());
                        has_got = item.has_value();
                        if (item) got.insert(*item);
                    } else {
                        std::string item = co_await timeout(limit, again.take());
                        has_got = true;
                        got.insert(item);
                    }
                } catch (const error& e) {
                    CHECK(e.code() == errc::timed_out);
                    ++timeouts;
                }
                if (!s.ensemble.children("/q/entries").empty()) continue;
                co_await sleep(10ms);
                idle = has_got ? 0 : idle + 1;
            }
            CHECK(got.size() == n);
            for (const std::string& item : all) CHECK(got.count(item) == 1);
            CHECK(timeouts > n / 4);
        });
    }
}

TEST_CASE(
    "work_queue: a take() that is cancelled at any step leaves its item to the take() that waits, or to the next") {
    for (const bool next_waits : {false, true})
        for (const bool expires : {false, true}) {
            std::size_t steps = 1, kept = 0;
            for (std::size_t at = 0; at < steps; ++at) {
                INFO("cancelled after " << at << " steps, " << (next_waits ? "another waits" : "none waits")
                                        << (expires ? ", then the session ends" : ""));
                scene s;
                s.run([&]() -> asio::awaitable<void> {
                    const work_queue q(s.zk, "/q");
                    co_await q.put("a");
                    std::optional<std::string> first, second;
                    std::optional<ended> told;
                    const auto take = [&]() -> asio::awaitable<void> {
                        std::string item = co_await q.take();
                        first = std::move(item);
                    };
                    const auto cancelled = [&]() -> asio::awaitable<void> { told = co_await end_of(take()); };
                    const auto again = [&]() -> asio::awaitable<void> {
                        std::string item = co_await q.take();
                        second = std::move(item);
                    };
                    running takes(s.ensemble.get_executor(), cancelled());
                    std::optional<running> waits;
                    if (next_waits) waits.emplace(s.ensemble.get_executor(), again());
                    std::size_t step = 0;
                    s.ensemble.on_step([&](std::string_view) {
                        if (step++ == at) asio::post(s.ensemble.context(), [&] { takes.cancel(); });
                    });
                    co_await takes.end();
                    s.ensemble.on_step(nullptr);
                    steps = std::max(steps, at == 0 ? 25 : std::min<std::size_t>(step, 40));
                    REQUIRE(told);
                    INFO(told->said);
                    const bool was_removed = s.ensemble.children("/q/entries").empty();
                    if (expires) {
                        co_await sleep(1s);
                        s.ensemble.expire(s.zk);
                        co_await sleep(1s);
                    }
                    if (first) {
                        CHECK(*first == "a");
                        co_await q.put("b");
                    } else {
                        CHECK(told->code == condition::cancelled);
                        kept += was_removed;
                    }
                    if (!waits) waits.emplace(s.ensemble.get_executor(), again());
                    co_await sleep(1min);
                    CHECK(waits->ended());
                    CHECK(second == (first ? "b" : "a"));
                    waits->cancel();
                    co_await waits->end();
                    CHECK(s.ensemble.children("/q/entries").empty());
                });
            }
            CHECK(kept > 0);
        }
}

TEST_CASE(
    "work_queue: an item of a cancelled take() goes to no receive(), and keeps neither the client nor the loop open") {
    fake_ensemble e;
    auto all = [&]() -> asio::awaitable<void> {
        const client zk = e.client(calm());
        {
            const work_queue q(zk, "/q");
            co_await q.put("a");
            const auto take = [&]() -> asio::awaitable<void> { co_await q.take(); };
            running takes(e.get_executor(), take());
            e.on_step([&](std::string_view) {
                if (e.children("/q/entries").empty()) asio::post(e.context(), [&] { takes.cancel(); });
            });
            const std::error_code why = co_await takes.code();
            CHECK(why == condition::cancelled);
            e.on_step(nullptr);
            const auto receive = [&]() -> asio::awaitable<void> { co_await q.receive(); };
            running receives(e.get_executor(), receive());
            co_await sleep(10s);
            CHECK_FALSE(receives.ended());
            receives.cancel();
            co_await receives.end();
        }
        CHECK(e.children("/q/entries").empty());
        co_await zk.idle();
        co_await zk.close();
    };
    e.run(all);
    e.run_dry();
    CHECK(e.now() < 1min);
    CHECK(e.watches() == 0);
}

}  // namespace work_queue_take_tests
