#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace work_queue_puts_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

client_options patient() { return client_options("fake").session_timeout(20s).connection_timeout(1h); }

struct outcome {
    bool done = false, unknown = false;
    std::error_code code;
};

asio::awaitable<void> put(work_queue q, std::string item, outcome& o) {
    try {
        co_await q.put(item);
        o.done = true;
    } catch (const error& e) {
        o.code = e.code();
        o.unknown = e.outcome_unknown();
    }
}

std::map<std::string, int> items_of(const fake_ensemble& e) {
    std::map<std::string, int> found;
    for (const std::string& name : e.children("/q/entries")) ++found[*e.data("/q/entries/" + name)];
    return found;
}

}  // namespace

TEST_CASE("work_queue: puts at the same time travel together, in their order", "[numbers]") {
    fake_ensemble e;
    const client zk = e.client(patient());
    auto body = [&]() -> asio::awaitable<void> {
        constexpr std::size_t many = 3000;
        const work_queue q(zk, "/q");
        co_await q.create();
        std::vector<outcome> told(many);
        std::vector<running> all;
        const std::size_t before = e.requests(zk);
        for (std::size_t i = 0; i < many; ++i)
            all.emplace_back(e.get_executor(), put(q, std::to_string(100'000 + i), told[i]));
        for (running& r : all) co_await r.end();
        CHECK(e.requests(zk) - before < 100);
        CHECK(std::all_of(told.begin(), told.end(), [](const outcome& o) { return o.done; }));
        CHECK(e.children("/q/receipts").size() <= 16);
        std::vector<std::string> in_order;
        for (const std::string& name : e.children("/q/entries")) in_order.push_back(*e.data("/q/entries/" + name));
        CHECK(in_order.size() == many);
        CHECK(std::is_sorted(in_order.begin(), in_order.end()));
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("work_queue: puts that travel together are bounded by bytes") {
    fake_ensemble e;
    const client zk = e.client(patient());
    auto body = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        std::vector<outcome> told(60);
        std::vector<running> all;
        for (outcome& o : told) all.emplace_back(e.get_executor(), put(q, std::string(100'000, 'x'), o));
        for (running& r : all) co_await r.end();
        CHECK(std::all_of(told.begin(), told.end(), [](const outcome& o) { return o.done; }));
        CHECK(e.children("/q/entries").size() == told.size());
        co_await zk.close();
    };
    e.run(body);
}

TEST_CASE("work_queue: puts that travel together, cut, cancelled, and with lost answers, are put once or not at all") {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client zk = e.client(patient());
        auto body = [&]() -> asio::awaitable<void> {
            constexpr std::size_t many = 200;
            const work_queue q(zk, "/q");
            co_await q.create();
            std::vector<outcome> told(many);
            std::vector<running> all;
            for (std::size_t i = 0; i < many; ++i)
                all.emplace_back(e.get_executor(), put(q, std::to_string(i), told[i]));
            std::size_t step = 0, next = seed % 5;
            if (seed % 3 == 0) e.lose_answer(zk, "multi");
            e.on_step([&](std::string_view) {
                ++step;
                if (step % 3 == 0 && next < many) {
                    asio::post(e.context(), [&r = all[next]] { r.cancel(); });
                    next += 5;
                }
                if (step == seed) asio::post(e.context(), [&] { e.cut(zk); });
                if (seed % 7 == 0 && step == 2 * seed) asio::post(e.context(), [&] { e.expire(zk); });
            });
            for (running& r : all) co_await r.end();
            e.on_step(nullptr);
            co_await zk.current_session();
            co_await zk.idle();
            co_await zk.get("/q");
            const std::map<std::string, int> found = items_of(e);
            for (std::size_t i = 0; i < many; ++i) {
                const auto it = found.find(std::to_string(i));
                const int times = it == found.end() ? 0 : it->second;
                INFO("item " << i << ", " << told[i].code.message());
                CHECK(times <= 1);
                if (told[i].done) CHECK(times == 1);
                if (!told[i].done && !told[i].unknown) CHECK(times == 0);
            }
            co_await zk.close();
        };
        e.run(body);
    }
}

TEST_CASE("work_queue: very many puts that wait for room, and receives, are cancelled one after another", "[numbers]") {
    fake_ensemble e;
    const client zk = e.client(patient());
    auto body = [&]() -> asio::awaitable<void> {
        constexpr std::size_t many = 10'000;
        const work_queue full(zk, "/q", work_queue_options().most_items(1)), empty(zk, "/empty");
        co_await full.put("first");
        std::vector<outcome> told(many);
        std::size_t received = 0;
        const auto receive = [&]() -> asio::awaitable<void> {
            const std::string item = co_await empty.take();
            ++received;
        };
        std::vector<running> puts, takes;
        for (std::size_t i = 0; i < many; ++i) {
            puts.emplace_back(e.get_executor(), put(full, "item", told[i]));
            takes.emplace_back(e.get_executor(), receive());
        }
        co_await sleep_for(1s);
        const auto is_kept = [](std::size_t i) { return i == many / 2 || i == many - 1; };
        for (std::size_t i = 0; i < many; ++i) {
            if (is_kept(i)) continue;
            puts[i].cancel();
            takes[i].cancel();
        }
        co_await sleep_for(1s);
        CHECK(std::none_of(told.begin(), told.end(), [](const outcome& o) { return o.done || o.unknown; }));
        for (int i = 0; i < 2; ++i) {
            const std::string item = co_await full.take();
            CHECK(item == (i == 0 ? "first" : "item"));
            co_await empty.put("item");
        }
        for (const std::size_t i : {many / 2, many - 1}) {
            co_await puts[i].end();
            co_await takes[i].end();
            CHECK(told[i].done);
        }
        CHECK(received == 2);
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace work_queue_puts_tests
