// What a work_queue costs the servers: each law stands beside its check.

#include "testing/cost.hpp"
#include "testing/work_queue_scene.hpp"

#include <cmath>
#include <cstddef>
#include <string_view>

namespace work_queue_cost_tests {

using namespace work_queue_scenes;

namespace {

std::vector<client> clients(fake_ensemble& e, std::size_t n) {
    std::vector<client> all;
    for (std::size_t i = 0; i < n; ++i) all.push_back(e.client(rare_heartbeats(e)));
    return all;
}

asio::awaitable<void> close_all(std::vector<client> all) {
    for (const client& zk : all) co_await zk.close();
}

// Counts how often a client asks after all its requests were answered: round trips that follow each other. Of requests
// that are sent together, some are answered before the next one arrives, and are counted as well.
class round_trips {
public:
    explicit round_trips(fake_ensemble& e) {
        e.on_step([this](std::string_view step) {
            if (step.find(" deliver ") != step.npos && pending_ > 0) --pending_;
            if (step.find(" apply ") == step.npos) return;
            if (pending_++ == 0) ++n_;
        });
    }
    std::size_t read() const { return n_; }

private:
    std::size_t pending_ = 0, n_ = 0;
};

// A listing of n items serves until a sixteenth of them is used. Each is one of the items and one of the claims.
std::size_t listings_until_empty(std::size_t n) {
    const double of_many = 16 * std::log(1 + static_cast<double>(n) / 16);
    return 2 * (static_cast<std::size_t>(of_many) + 18);
}

}  // namespace

TEST_CASE("work_queue, cost: items for n processes that wait at an empty queue", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{30}, std::size_t{100}}) {  // 1000 take minutes
        fake_ensemble e;
        const std::vector<client> all = clients(e, n + 1);
        constexpr std::size_t items = 20;
        std::size_t done = 0;
        auto play = [&]() -> asio::awaitable<void> {
            const work_queue q(all[0], "/q");
            co_await q.create();
            auto body = [&](delivery&) -> asio::awaitable<void> {
                ++done;
                co_return;
            };
            auto consume = [&](client zk) -> asio::awaitable<void> {
                const work_queue from(zk, "/q");
                co_await from.consume(body);
            };
            std::vector<running> consumers;
            for (std::size_t i = 1; i <= n; ++i) consumers.emplace_back(e.get_executor(), consume(all[i]));
            co_await sleep(5s);
            const auto put = [&]() -> asio::awaitable<void> {
                for (std::size_t i = 0; i < items; ++i) {
                    co_await q.put("x");
                    co_await sleep(300ms);
                }
                co_await sleep(2s);
            };
            co_await put();  // the receipts, which stay
            const cost_meter meter(e);
            co_await put();
            const cost c = meter.read();
            INFO(n << " processes, for " << items << " items: " << c);
            CHECK(done == 2 * items);
            CHECK(c.listings <= items * (5 * n / 2 + 10));  // most list once, those that were close more often
            CHECK(c.requests <= items * (3 * n + 15));
            CHECK(c.bytes <= items * (520 * n + 1000));
            CHECK(c.writes <= items * (n / 16 + 6));  // the put, the claim, the removal, and refused claims
            // While they wait: two watches each, the items and those with a delay; and what claims were seen.
            CHECK(e.watches() <= 3 * n);
            for (running& r : consumers) r.cancel();
            for (running& r : consumers) co_await r.end();
            co_await close_all(all);
        };
        e.run(play);
    }
}

TEST_CASE("work_queue, cost: 4 n items at once for n processes", "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{30}, std::size_t{100}}) {
        fake_ensemble e;
        const std::vector<client> all = clients(e, n + 1);
        const std::size_t items = 4 * n;
        std::size_t done = 0;
        auto play = [&]() -> asio::awaitable<void> {
            const work_queue q(all[0], "/q");
            co_await q.create();
            auto body = [&](delivery&) -> asio::awaitable<void> {
                co_await sleep(10ms);
                ++done;
            };
            auto consume = [&](client zk) -> asio::awaitable<void> {
                const work_queue from(zk, "/q");
                co_await from.consume(body);
            };
            std::vector<running> consumers;
            for (std::size_t i = 1; i <= n; ++i) consumers.emplace_back(e.get_executor(), consume(all[i]));
            co_await sleep(5s);
            const cost_meter meter(e);
            const texts many(items, "x");
            co_await q.put_all(many);
            co_await sleep(10s);
            const cost c = meter.read();
            INFO(n << " processes, for " << items << " items: " << c);
            CHECK(done == items);
            CHECK(c.requests <= 13 * items);  // whatever n is: who comes too late looks further back in the line
            CHECK(c.writes <= 4 * items + items / 2);
            CHECK(c.bytes <= 180 * n * n + 14'000 * n);
            for (running& r : consumers) r.cancel();
            for (running& r : consumers) co_await r.end();
            co_await close_all(all);
        };
        e.run(play);
    }
}

TEST_CASE("work_queue, cost: n items of one process, and n producers", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        const std::vector<client> all = clients(e, 1);
        auto play = [&]() -> asio::awaitable<void> {
            const work_queue q(all[0], "/q"), limited(all[0], "/q", work_queue_options().most_items(1'000'000));
            co_await q.put("x");
            co_await q.take();
            co_await limited.put("x");
            co_await q.take();
            {
                const cost_meter meter(e);
                for (std::size_t i = 0; i < n; ++i) co_await q.put("x");
                const cost c = meter.read();
                INFO(n << " puts: " << c);
                CHECK(c.requests == n);  // one each
                CHECK(c.bytes <= 350 * n);
                CHECK(c.listings == 0);
                CHECK(c.ephemerals == 0);
            }
            {
                const cost_meter meter(e);
                for (std::size_t i = 0; i < 10; ++i) co_await limited.put("x");
                const cost c = meter.read();
                INFO("10 puts into a queue of " << n << " that has room: " << c);
                CHECK(c.requests == 20);  // and the number of items
                CHECK(c.bytes <= 10 * 1000);
                CHECK(c.listings == 0);
            }
            {
                const work_queue full(all[0], "/q", work_queue_options().most_items(n));
                const auto put = [&]() -> asio::awaitable<void> { co_await full.put("last"); };
                std::vector<running> wait;
                for (int i = 0; i < 100; ++i) wait.emplace_back(e.get_executor(), put());
                co_await sleep(10s);
                const cost_meter meter(e);
                co_await sleep(1min);
                const cost c = meter.read();
                INFO("100 puts that wait for a minute: " << c);
                CHECK(c.requests <= 40);  // one in two seconds, for all puts of the session
                CHECK(c.bytes <= 6000);
                CHECK(c.listings == 0);
                for (running& w : wait) w.cancel();
                for (running& w : wait) co_await w.end();
                CHECK(e.children("/q/entries").size() == n + 10);
                for (std::size_t i = 0; i < 10; ++i) co_await q.take();
            }
            {
                const cost_meter meter(e);
                for (std::size_t i = 0; i < n; ++i) co_await q.take();
                const cost c = meter.read();
                INFO(n << " takes, one after another: " << c);
                CHECK(c.writes <= 2 * n + 1);      // a claim and a removal each
                CHECK(c.requests <= 3 * n + 200);  // and a read; a sixteenth of the items is handed out by a listing
                CHECK(c.listings <= listings_until_empty(n));
                CHECK(c.bytes <= 1800 * n);
                CHECK(c.ephemerals == 0);
            }
            const texts many(n, "x");
            co_await q.put_all(many);
            {
                auto body = [&](delivery&) -> asio::awaitable<void> { co_return; };
                const auto consume = [&]() -> asio::awaitable<void> {
                    co_await q.consume(body, consume_options().parallel(32));
                };
                const cost_meter meter(e);
                running consumer(e.get_executor(), consume());
                while (!e.children("/q/entries").empty()) co_await sleep(10ms);
                const cost c = meter.read();
                INFO(n << " items of consume() with 32 at a time: " << c);
                CHECK(c.writes <= n + n / 4 + 50);  // a removal each, and claims of up to 32 items
                CHECK(c.requests <= 2 * n + n / 4 + 200);
                CHECK(c.bytes <= 1400 * n);
                consumer.cancel();
                co_await consumer.end();
            }
            co_await close_all(all);
        };
        e.run(play);
    }
}

TEST_CASE("work_queue, cost: n items that fail rest with 32 claims", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        const std::vector<client> all = clients(e, 1);
        auto play = [&]() -> asio::awaitable<void> {
            const work_queue q(all[0], "/q");
            const texts many(n, "x");
            co_await q.put_all(many);
            const cost_meter meter(e);
            for (std::size_t i = 0; i < n; ++i) {
                delivery d = co_await q.receive();
                co_await d.again(1h);
            }
            co_await sleep(1s);
            const cost c = meter.read();
            INFO(n << " items: " << c);
            CHECK(c.ephemerals <= 33);      // and a receipt
            CHECK(c.writes <= 2 * n + 10);  // a claim and its end each
            CHECK(c.bytes <= 3000 * n);
            CHECK(c.listings <= listings_until_empty(n));
            co_await close_all(all);
        };
        e.run(play);
    }
}

TEST_CASE("work_queue, cost: n dead items are read in n / 64 round trips", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        const std::vector<client> all = clients(e, 1);
        auto play = [&]() -> asio::awaitable<void> {
            const work_queue q(all[0], "/q");
            co_await q.create();
            for (std::size_t i = 0; i < n; ++i) {
                const std::string path = "/q/dead/entry-100-" + std::to_string(1'000'000'000 + i) + ".1";
                e.create(path, "x");
                e.create(path + "/reason", "no");
            }
            const cost_meter meter(e);
            const round_trips trips(e);
            const std::vector<dead_item> dead = co_await q.dead();
            e.on_step(nullptr);
            const cost c = meter.read();
            INFO(n << " dead items: " << c << ", " << trips.read() << " round trips");
            CHECK(dead.size() == n);
            CHECK(c.requests <= 2 * n / 32 + 8);  // one by one: 2n + 1
            CHECK(c.bytes <= 380 * n);
            CHECK(trips.read() <= 10 + n / 4);  // one after another: 2n
            const round_trips again(e);
            for (int i = 0; i < 50; ++i) co_await q.info();
            e.on_step(nullptr);
            CHECK(again.read() <= 150);  // one after another: 200
            co_await close_all(all);
        };
        e.run(play);
    }
}

// A sync(), a read of the item beside one of its reason, and the transaction.
TEST_CASE("work_queue, cost: a dead item is revived in three round trips", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        const std::vector<client> all = clients(e, 1);
        auto play = [&]() -> asio::awaitable<void> {
            const work_queue q(all[0], "/q");
            co_await q.put("x");  // makes the directories and the receipt
            const auto name = [](std::size_t i) { return "entry-100-" + std::to_string(1'000'000'000 + i) + ".1"; };
            for (std::size_t i = 0; i < n; ++i) {
                const std::string path = "/q/dead/" + name(i);
                e.create(path, "x");
                e.create(path + "/reason", "no");
            }
            constexpr std::size_t some = 10;
            std::size_t done = 0;
            const cost_meter meter(e);
            const round_trips trips(e);
            for (std::size_t i = 0; i < some; ++i) {
                const bool is_revived = co_await q.revive(name(i));
                done += is_revived;
            }
            e.on_step(nullptr);
            const cost revived = meter.read();
            const cost_meter again(e);
            const bool is_there = co_await q.revive(name(n));
            const cost vain = again.read();
            INFO(n << " dead items, ten are revived: " << revived << ", " << trips.read() << " round trips; one that "
                   << "does not exist: " << vain);
            CHECK(done == some);
            CHECK_FALSE(is_there);
            CHECK(revived.requests == 4 * some);
            CHECK(revived.writes == some);
            CHECK(revived.listings == 0);
            CHECK(revived.bytes <= 1000 * some);
            CHECK(revived.watches == 0);
            CHECK(revived.ephemerals == 0);
            CHECK(trips.read() < 4 * some);  // one after another: four for each
            CHECK(vain.requests == 3);
            CHECK(vain.writes == 0);
            co_await close_all(all);
        };
        e.run(play);
    }
}

}  // namespace work_queue_cost_tests
