#include "testing/work_queue_scene.hpp"

#include <zkasio/error.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

namespace work_queue_faults_tests {

using namespace work_queue_scenes;

TEST_CASE("work_queue: servers that refuse to remove a claim are reported by again()") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        delivery d = co_await q.receive();
        s.ensemble.refuse("/q/taken", zk_errc::no_auth);
        std::optional<ended> told;
        const auto give_back = [&]() -> asio::awaitable<void> { told = co_await end_of(d.again()); };
        running gives_back(s.ensemble.get_executor(), give_back());
        co_await sleep(1min);
        CHECK(gives_back.ended());
        gives_back.cancel();
        co_await gives_back.end();
        REQUIRE(told);
        CHECK(told->code == zk_errc::no_auth);
        s.ensemble.accept("/q/taken");
        s.ensemble.remove("/q/taken/" + d.name());
    });
}

TEST_CASE("work_queue: a session that ends at any step of a put with a delay: the item is put once, or may be there") {
    std::size_t unknown = 0;
    for (const bool fresh : {true, false}) {
        std::size_t steps = 1;
        for (std::size_t at = 0; at < steps; ++at) {
            INFO("expired after " << at << " steps, new queue: " << fresh);
            scene s;
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q(s.zk, "/q");
                if (!fresh) co_await q.put("first", put_options().delay(1h));
                std::size_t step = 0;
                s.ensemble.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(s.ensemble.context(), [&] { s.ensemble.expire(s.zk); });
                });
                const ended e = co_await end_of(q.put("second", put_options().delay(1h)));
                s.ensemble.on_step(nullptr);
                steps = std::max(steps, at == 0 ? 60 : std::min<std::size_t>(step, 60));
                const std::size_t there = s.ensemble.children("/q/later").size() - (fresh ? 0 : 1);
                if (!e.code) {
                    CHECK(there == 1);
                } else {
                    INFO(e.said);
                    CHECK(e.code == errc::session_expired);
                    CHECK(e.unknown);
                    CHECK(there <= 1);
                    ++unknown;
                }
            });
        }
    }
    CHECK(unknown <= 6);  // while the request with the item is under way
}

TEST_CASE(
    "work_queue: an operator who removes the dead items with their directory keeps no item from being handed out") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().most_deliveries(1));
        co_await q.put("poison");
        {
            delivery d = co_await q.receive();
            co_await d.again();
        }
        co_await q.put("good");
        s.ensemble.remove("/q/dead");
        std::string got;
        const auto take = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
        running takes(s.ensemble.get_executor(), take());
        co_await sleep(1min);
        CHECK(takes.ended());
        takes.cancel();
        co_await takes.end();
        CHECK(got == "good");
        CHECK(s.ensemble.children("/q/dead").size() == 1);
    });
}

TEST_CASE("work_queue: an item whose time is beyond all timers costs nothing") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.create();
        s.ensemble.create("/q/later/00c0000000000-100-0000000000");
        const auto take = [&]() -> asio::awaitable<void> { co_await q.take(); };
        running takes(s.ensemble.get_executor(), take());
        co_await sleep(1s);
        const std::size_t before = s.ensemble.requests(s.zk);
        co_await sleep(1min);
        CHECK(s.ensemble.requests(s.zk) - before < 50);
        takes.cancel();
        co_await takes.end();
        s.ensemble.remove("/q/later/00c0000000000-100-0000000000");
    });
}

TEST_CASE("work_queue: an item that is given back with the longest pause rests") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        delivery d = co_await q.receive();
        co_await d.again(std::chrono::milliseconds::max());
        co_await sleep(1min);
        CHECK(s.ensemble.children("/q/taken").size() == 1);
        s.ensemble.remove("/q/taken/" + d.name());
    });
}

TEST_CASE("work_queue: large items that are due together are read a few times each") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const std::string large(300 * 1024, 'x');
        for (int i = 0; i < 40; ++i) co_await q.put(large, put_options().delay(10s));
        co_await sleep(20s);
        std::size_t reads = 0;
        s.ensemble.on_step(
            [&](std::string_view step) { reads += step.find("apply 0: get /q/later/") != std::string_view::npos; });
        for (int i = 0; i < 40; ++i) co_await q.take();
        CHECK(reads < 100);
    });
}

TEST_CASE("work_queue: large items that two processes want are read a few times each") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        const std::string large(300 * 1024, 'x');
        for (int i = 0; i < 64; ++i) co_await q.put(large);
        std::size_t reads = 0;
        s.ensemble.on_step(
            [&](std::string_view step) { reads += step.find("get /q/entries/") != std::string_view::npos; });
        const auto take = [&](const work_queue& from) -> asio::awaitable<void> { co_await from.take(); };
        std::vector<running> takers;
        for (int i = 0; i < 64; ++i) takers.emplace_back(s.ensemble.get_executor(), take(i % 2 ? q : theirs));
        for (running& r : takers) co_await r.end();
        CHECK(reads < 128);
        co_await other.close();
    });
}

TEST_CASE("work_queue: of two calls of done() at the same time, the second finds the delivery over") {
    for (std::uint64_t seed = 1; seed < 6; ++seed) {
        scene s(seed);
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q");
            co_await q.put("a");
            delivery d = co_await q.receive();
            std::vector<ended> ends;
            const auto done = [&]() -> asio::awaitable<void> {
                const ended e = co_await end_of(d.done());
                ends.push_back(e);
            };
            running a(s.ensemble.get_executor(), done()), b(s.ensemble.get_executor(), done());
            co_await a.end();
            co_await b.end();
            REQUIRE(ends.size() == 2);
            CHECK((!ends[0].code || !ends[1].code));
            CHECK((ends[0].code ? ends[0] : ends[1]).code == errc::lock_released);
            CHECK(d.reason() == loss_reason::released);
        });
    }
}

TEST_CASE("work_queue: again() while done() is under way") {
    for (const bool warm : {false, true}) {
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q");
            co_await q.put("a");
            delivery d = co_await q.receive();
            if (warm) co_await s.zk.sync();
            std::optional<ended> told;
            const auto done = [&]() -> asio::awaitable<void> { told = co_await end_of(d.done()); };
            running a(s.ensemble.get_executor(), done()), b(s.ensemble.get_executor(), done());
            co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
            co_await d.again();
            co_await a.end();
            co_await b.end();
            REQUIRE(told);
            INFO(told->said);
            CHECK((!told->code || told->code == errc::lock_released));
        });
    }
}

TEST_CASE("work_queue: put_all, cancelled while it waits for room, after an earlier transaction") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().most_items(3)), theirs(other, "/q");
        const std::string large(600 * 1024, 'x');
        for (int pauses = 0; pauses < 200; ++pauses) {
            INFO(pauses);
            std::optional<ended> told;
            co_await q.put("a");
            co_await q.put("b");
            const auto put = [&]() -> asio::awaitable<void> { told = co_await end_of(q.put_all(of(large, large))); };
            running puts(s.ensemble.get_executor(), put());
            while (s.ensemble.children("/q/entries").size() < 3) co_await sleep(1ms);
            co_await sleep(100ms);
            s.ensemble.create("/q/entries/" + std::string("entry-100-00000xx") + std::to_string(500 + pauses));
            s.ensemble.remove("/q/entries/" + std::string("entry-100-00000xx") + std::to_string(500 + pauses));
            co_await sleep(std::chrono::milliseconds(pauses));
            puts.cancel();
            co_await puts.end();
            REQUIRE(told);
            INFO(told->said);
            CHECK(told->code == condition::cancelled);
            CHECK(told->unknown);
            CHECK(told->said.find("after the first 1 items") != std::string::npos);
            for (const std::string& name : s.ensemble.children("/q/entries")) s.ensemble.remove("/q/entries/" + name);
        }
        co_await other.close();
    });
}

TEST_CASE("work_queue: consume() that is cancelled never completes") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        auto body = [&](delivery&) -> asio::awaitable<void> {
            try {
                co_await sleep(1h);
            } catch (const std::system_error&) {
            }
        };
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body); };
        running consumer(s.ensemble.get_executor(), consume());
        co_await sleep(10s);
        consumer.cancel();
        const std::error_code end = co_await consumer.code();
        CHECK(end == condition::cancelled);
        CHECK(items(s.ensemble) == texts{"a"});
    });
}

TEST_CASE("work_queue: a client that is closed at any step of a receive") {
    const bool is_late = GENERATE(false, true);
    std::size_t steps = 1;
    for (std::size_t at = 0; at < steps; ++at) {
        INFO("closed after " << at << " steps");
        fake_ensemble e;
        const client zk = e.client(calm());
        auto all = [&]() -> asio::awaitable<void> {
            const work_queue q(zk, "/q");
            co_await q.put("a", put_options().delay(is_late ? 1ms : 0ms));
            co_await q.put("b", put_options().delay(1s));
            if (is_late) co_await sleep(100ms);
            std::size_t step = 0;
            std::optional<ended> told;
            const auto one = [&]() -> asio::awaitable<void> { told = co_await end_of(q.receive()); };
            running r(e.get_executor(), one());
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            std::optional<running> closes;
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { closes.emplace(e.get_executor(), close()); });
            });
            co_await r.end();
            e.on_step(nullptr);
            steps = std::max(steps, at == 0 ? 20 : std::min<std::size_t>(step, 40));
            REQUIRE(told);
            INFO(told->said);
            CHECK((!told->code || told->code == errc::client_closed));
            if (closes) co_await closes->end();
            co_await zk.close();
        };
        e.run(all);
        CHECK(e.sessions() == 0);
    }
}

TEST_CASE("work_queue: a foreign child is told again to whoever asks again at once, on the strand of the client") {
    fake_ensemble e;
    const asio::strand<asio::io_context::executor_type> strand = asio::make_strand(e.context());
    const client zk = e.client(strand, calm());
    auto all = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        co_await q.put("a");
        e.create("/q/entries/notes");
        std::vector<ended> told;
        const auto twice = [&]() -> asio::awaitable<void> {
            for (int i = 0; i < 3; ++i) {
                const ended x = co_await end_of(q.receive());
                told.push_back(x);
            }
        };
        running r(strand, twice());
        co_await sleep(1min);
        CHECK(r.ended());
        r.cancel();
        co_await r.end();
        for (const ended& x : told) CHECK(x.code == errc::foreign_child);
        CHECK(told.size() == 3);
        e.remove("/q/entries/notes");
        co_await zk.close();
    };
    e.run(all);
}

TEST_CASE("work_queue: a dead item is revived after the items' directory was removed") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        delivery d = co_await q.receive();
        co_await d.reject("no");
        s.ensemble.remove("/q/entries");
        const std::vector<dead_item> dead = co_await q.dead();
        REQUIRE(dead.size() == 1);
        std::error_code why;
        try {
            co_await q.revive(dead[0].name);
        } catch (const error& e) {
            why = e.code();
        }
        CHECK_FALSE(why);
        CHECK(items(s.ensemble) == texts{"a"});
    });
}

TEST_CASE("work_queue: a spent item that another client claims does not delay the others") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().most_deliveries(1)), theirs(other, "/q");
        co_await q.put("poison", put_options().priority(200));
        {
            delivery d = co_await q.receive();
            co_await d.again();
        }
        for (int i = 0; i < 20; ++i) co_await q.put(std::to_string(i));
        bool first = true;
        const std::string name = s.ensemble.children("/q/entries").back();
        s.ensemble.on_step([&](std::string_view step) {
            if (first && step.find("deliver 0: multi_read") != std::string_view::npos) {
                first = false;
                s.ensemble.create("/q/taken/" + name);
            }
        });
        const auto begin = s.ensemble.now();
        std::vector<running> takers;
        const auto take = [&]() -> asio::awaitable<void> { co_await q.take(); };
        for (int i = 0; i < 21; ++i) takers.emplace_back(s.ensemble.get_executor(), take());
        while (s.ensemble.children("/q/entries").size() > 1 && s.ensemble.now() - begin < 1min) co_await sleep(1ms);
        CHECK(std::chrono::duration_cast<std::chrono::milliseconds>(s.ensemble.now() - begin).count() < 200);
        s.ensemble.on_step(nullptr);
        for (running& r : takers) r.cancel();
        for (running& r : takers) co_await r.end();
        s.ensemble.remove("/q/taken/" + name);
        co_await other.close();
    });
}

TEST_CASE("work_queue: of items of which one is too large none is put") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const ended e = co_await end_of(q.put_all(of("a", std::string(1024 * 1024, 'x'), "b")));
        CHECK(e.code == errc::too_large);
        CHECK_FALSE(e.unknown);
        CHECK(items(s.ensemble).empty());
    });
}

TEST_CASE("work_queue: a session that ends at any step of consume() loses no item") {
    for (const layout_case& l : all_layouts()) {
        std::size_t steps = 1;
        for (std::size_t at = 0; at < steps; ++at) {
            INFO(l.name << ", expired after " << at << " steps");
            scene s(1 + at % 2);
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q = l.queue(s.zk, work_queue_options().most_deliveries(5));
                co_await q.put_all(of("a", "b", "c", "d"), l.how());
                co_await q.put("e", l.how().delay(1s));
                std::size_t step = 0;
                std::map<std::string, int> tried;
                s.ensemble.on_step([&](std::string_view) {
                    if (step++ == at) asio::post(s.ensemble.context(), [&] { s.ensemble.expire(s.zk); });
                });
                auto body = [&](delivery& d) -> asio::awaitable<void> {
                    ++tried[d.item()];
                    co_await sleep(100ms);
                    if (d.item() == "b" && tried["b"] == 1) throw std::runtime_error("no");
                };
                const auto consume = [&]() -> asio::awaitable<void> {
                    co_await q.consume(body, consume_options().parallel(2));
                };
                running consumer(s.ensemble.get_executor(), consume());
                const auto begin = s.ensemble.now();
                while ((!s.ensemble.children(l.items).empty() || !s.ensemble.children(l.later).empty()) &&
                       s.ensemble.now() - begin < 10min)
                    co_await sleep(100ms);
                CHECK_FALSE(consumer.ended());
                CHECK(tried.size() == 5);
                for (auto& [item, n] : tried) CHECK(n <= 3);
                s.ensemble.on_step(nullptr);
                consumer.cancel();
                const std::error_code end = co_await consumer.code();
                CHECK(end == condition::cancelled);
                const std::vector<dead_item> dead = co_await q.dead();
                CHECK(dead.empty());
                steps = std::max(steps, at == 0 ? 40 : std::min<std::size_t>(step, 70));
            });
        }
    }
}

TEST_CASE("work_queue: whoever waits for the end of a claim is told when it is given back with a pause") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        delivery d = co_await q.receive();
        loss_reason why = loss_reason::none;
        const auto wait = [&]() -> asio::awaitable<void> { why = co_await d.lost(); };
        running waits(s.ensemble.get_executor(), wait());
        co_await s.zk.sync();
        co_await d.again(2s);
        co_await sleep(1s);
        CHECK(why == loss_reason::released);
        CHECK(s.ensemble.children("/q/taken").size() == 1);
        co_await waits.end();
        co_await sleep(2s);
    });
}

TEST_CASE("work_queue: an item that has just died is revived through a server that lags behind") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        scene s(seed);
        const client other = s.ensemble.client(calm());
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q"), theirs(other, "/q");
            co_await q.put("a");
            co_await other.sync();
            s.ensemble.lag();
            delivery d = co_await q.receive();
            co_await d.reject("no");
            const texts dead = s.ensemble.children("/q/dead");
            REQUIRE(dead.size() == 1);
            const bool revived = co_await theirs.revive(dead.front());
            CHECK(revived);
            co_await other.close();
        });
    }
}

TEST_CASE("work_queue: a claim whose outcome is unknown is not taken for that of another client") {
    // Before the claim arrives, its connection breaks, the receipts go, and another client claims the item.
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await q.put("a");
        {
            delivery d = co_await theirs.receive();  // makes their receipt
            co_await d.again();
        }
        std::optional<delivery> second;
        const auto claim = [&]() -> asio::awaitable<void> {
            delivery d = co_await theirs.receive();
            second.emplace(std::move(d));
            for (const std::string& name : s.ensemble.children("/q/receipts")) s.ensemble.remove("/q/receipts/" + name);
            s.ensemble.let_in(s.zk);
        };
        std::optional<running> claims;
        s.ensemble.on_step([&](std::string_view step) {
            if (claims || step.find("apply 0: multi  /q/entries") == std::string_view::npos) return;
            s.ensemble.hold_down(s.zk);
            claims.emplace(s.ensemble.get_executor(), claim());
        });
        std::string got;
        const auto take = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
        running takes(s.ensemble.get_executor(), take());
        co_await sleep(5s);
        s.ensemble.on_step(nullptr);
        REQUIRE(second);
        CHECK(second->held());
        CHECK(s.ensemble.owns(other, "/q/taken/" + second->name()));
        CHECK_FALSE(takes.ended());
        co_await second->again();
        co_await takes.end();
        CHECK(got == "a");
        co_await other.close();
    });
}

TEST_CASE("work_queue: a delivery is held when it is given, also by slow servers") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        s.ensemble.step_time(2s);
        bool held = false;
        const auto receive = [&]() -> asio::awaitable<void> {
            delivery d = co_await q.receive();
            held = d.held();
            co_await d.done();
        };
        running receives(s.ensemble.get_executor(), receive());
        co_await sleep(1min);
        s.ensemble.step_time(100us);
        co_await receives.end();
        CHECK(held);
    });
}

}  // namespace work_queue_faults_tests
