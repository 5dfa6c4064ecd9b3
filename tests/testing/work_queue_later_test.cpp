#include "testing/steps.hpp"
#include "testing/work_queue_scene.hpp"

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace work_queue_later_tests {

using namespace work_queue_scenes;

namespace {

put_options in(std::chrono::milliseconds d) { return put_options().delay(d); }

}  // namespace

TEST_CASE(
    "work_queue: an item with a delay is handed out when the delay has "
    "passed, and not before") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        const auto begin = s.ensemble.now();
        co_await theirs.put("late", in(10min));
        co_await theirs.put("soon", in(10s));
        co_await theirs.put("soon, urgent", in(10s).priority(5));
        co_await theirs.put("now");
        CHECK(s.ensemble.children("/q/later").size() == 3);
        const std::string first = co_await q.take();
        CHECK(first == "now");
        const std::optional<std::string> none = co_await q.try_take();
        CHECK_FALSE(none);
        for (const char* data : {"soon, urgent", "soon"}) {
            const std::string got = co_await q.take();
            CHECK(got == data);
            CHECK(s.ensemble.now() - begin >= 10s);
            CHECK(s.ensemble.now() - begin < 12s);
        }
        const std::string last = co_await q.take();
        CHECK(last == "late");
        CHECK(s.ensemble.now() - begin >= 10min);
        CHECK(s.ensemble.now() - begin < 10min + 2s);
        CHECK(s.ensemble.children("/q/later").empty());
        const auto half = s.ensemble.now();
        co_await theirs.put("half", in(500ms));
        const std::string short_time = co_await q.take();
        CHECK(short_time == "half");
        CHECK(s.ensemble.now() - half >= 500ms);
        CHECK(s.ensemble.now() - half < 600ms);
        co_await other.close();
    });
}

TEST_CASE("work_queue: an item with a delay that is put while a consumer waits") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        texts got;
        const auto wait = [&]() -> asio::awaitable<void> {
            for (int i = 0; i < 2; ++i) {
                const std::string item = co_await q.take();
                got.push_back(item);
            }
        };
        running waits(s.ensemble.get_executor(), wait());
        co_await s.zk.idle();
        co_await theirs.put("b", in(10min));
        co_await theirs.put("a", in(5s));
        co_await waits.end();
        CHECK(got == texts{"a", "b"});
        co_await other.close();
    });
}

TEST_CASE(
    "work_queue: a cut at any step while items with a delay are put, "
    "moved and taken") {
    const auto play = [&](const layout_case& l, std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO(l.name << ", cuts after " << first << " and " << second << " steps, seed " << seed);
        scene s(seed);
        const client other = s.ensemble.client(calm());
        std::size_t step = 0;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue ours = l.queue(s.zk), theirs = l.queue(other);
            cut_at_steps(s.ensemble, s.zk, other, first, second, step);
            texts got;
            for (const char* data : {"a", "b", "c"}) co_await ours.put(data, l.how().delay(1s));
            const auto take = [&](const work_queue& from, int n) -> asio::awaitable<void> {
                for (; n > 0; --n) {
                    const std::string item = co_await from.take();
                    got.push_back(item);
                }
            };
            running a(s.ensemble.get_executor(), take(ours, 2)), b(s.ensemble.get_executor(), take(theirs, 1));
            const std::error_code one = co_await a.code(), two = co_await b.code();
            s.ensemble.on_step(nullptr);
            CHECK_FALSE(one);
            CHECK_FALSE(two);
            std::sort(got.begin(), got.end());
            CHECK(got == texts{"a", "b", "c"});
            co_await other.close();
        });
        CHECK(lasting_nodes(s.ensemble) == l.directories());
        return step;
    };
    for (const layout_case& l : all_layouts()) {
        const queue_kind k = l.layout.kind();
        const bool is_special = k == queue_kind::kazoo_locking || k == queue_kind::curator_delay;
        const std::size_t steps = play(l, 100000, 0, 1), most = is_special ? 3 : 1;
        REQUIRE(steps > 20);
        for (std::size_t first = 0; first < steps; ++first)
            for (std::size_t second = 0; second < most; ++second) play(l, first, second, 1 + first % 3);
    }
}

TEST_CASE(
    "work_queue: an item that is given back with a pause rests for that "
    "long, or until the session ends") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await q.put("a");
        const auto begin = s.ensemble.now();
        {
            delivery d = co_await q.receive();
            co_await d.again(30s);
            CHECK_FALSE(d.held());
            co_await d.again(10min);  // over already
            const ended e = co_await end_of(d.again(-1s));
            CHECK(e.code == errc::invalid_argument);
            const ended done = co_await end_of(d.done());
            CHECK(done.code == errc::lock_released);
        }
        co_await s.zk.idle();
        CHECK(s.ensemble.children("/q/taken").size() == 1);
        const std::optional<std::string> rests = co_await theirs.try_take();
        CHECK_FALSE(rests);
        {
            delivery d = co_await theirs.receive();
            CHECK(d.attempt() == 2);
            CHECK(s.ensemble.now() - begin >= 30s);
            CHECK(s.ensemble.now() - begin < 31s);
            co_await d.again();
        }
        delivery d = co_await q.receive();
        co_await d.again(10min);
        s.ensemble.expire(s.zk);
        const std::string got = co_await theirs.take();
        CHECK(got == "a");
        CHECK(s.ensemble.now() - begin < 2min);
        co_await other.close();
    });
}

TEST_CASE(
    "work_queue: what was delivered too often, and what is rejected, is "
    "dead until it is revived") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().most_deliveries(2));
        const std::vector<dead_item> none = co_await q.dead();
        CHECK(none.empty());
        co_await q.put("poison", put_options().priority(50));
        co_await q.put("good");
        for (int i = 0; i < 2; ++i) {
            delivery d = co_await q.receive();
            CHECK(d.item() == "poison");
            co_await d.again();
        }
        {
            delivery d = co_await q.receive();
            CHECK(d.item() == "good");
            s.ensemble.lose_answer(s.zk, "multi");
            co_await d.reject("not my job");
            CHECK_FALSE(d.held());
        }
        const std::optional<std::string> nothing = co_await q.try_take();
        CHECK_FALSE(nothing);
        const std::vector<dead_item> dead = co_await q.dead();
        REQUIRE(dead.size() == 2);
        CHECK(dead[0].item == "poison");
        CHECK(dead[0].reason == "delivered 2 times");
        CHECK(dead[1].item == "good");
        CHECK(dead[1].reason == "not my job");
        CHECK(dead[1].name.starts_with("entry-100-0000000001."));
        CHECK(dead[1].since.time_since_epoch() ==
              std::chrono::milliseconds(s.ensemble.stat("/q/dead/" + dead[1].name)->ctime));
        const work_queue_info n = co_await q.info();
        CHECK(n.waiting == 0);
        CHECK(n.dead == 2);
        s.ensemble.lose_answer(s.zk, "multi");
        const bool revived = co_await q.revive(dead[0].name);
        CHECK(revived);
        const bool twice = co_await q.revive(dead[0].name);
        CHECK_FALSE(twice);
        const ended e = co_await end_of(q.revive("notes"));
        CHECK(e.said == "revive /q/dead/notes: invalid argument (this is no dead item's name)");
        delivery d = co_await q.receive();
        CHECK(d.item() == "poison");
        CHECK(d.attempt() == 1);
        CHECK(d.name() == "entry-050-0000000002");
        co_await d.done();
    });
}

TEST_CASE(
    "work_queue: an item of the largest size is rejected and revived, "
    "with the longest reason") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().most_deliveries(1));
        const ended e = co_await end_of(q.put(std::string(1024 * 1024 - 1024, 'x')));
        const std::size_t most = std::stoul(e.said.substr(e.said.find("at most ") + 8));
        co_await q.put(std::string(most, 'x'));
        {
            delivery d = co_await q.receive();
            co_await d.reject(std::string(100'000, 'r'));
        }
        const std::vector<dead_item> dead = co_await q.dead();
        REQUIRE(dead.size() == 1);
        CHECK(dead[0].item.size() == most);
        CHECK(dead[0].reason == std::string(4096, 'r'));
        co_await q.revive(dead[0].name);
        delivery d = co_await q.receive();
        co_await d.again();
        const std::optional<std::string> none = co_await q.try_take();
        CHECK_FALSE(none);
        const work_queue_info n = co_await q.info();
        CHECK(n.dead == 1);
    });
}

TEST_CASE("work_queue: a full queue lets puts wait") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue_options two = work_queue_options().most_items(2);
        const work_queue q(s.zk, "/q", two), theirs(other, "/q", two);
        co_await q.put_all(of("a", "b"));
        bool put = false;
        const auto third = [&]() -> asio::awaitable<void> {
            co_await theirs.put("c");
            put = true;
        };
        running waits(s.ensemble.get_executor(), third());
        co_await other.idle();
        co_await s.zk.sync();
        CHECK_FALSE(put);
        {
            delivery d = co_await q.receive();
            co_await s.zk.sync();
            CHECK_FALSE(put);
            co_await d.done();
        }
        co_await waits.end();
        CHECK(put);
        CHECK(items(s.ensemble) == texts{"b", "c"});
        const work_queue_info n = co_await q.info();
        CHECK(n.waiting == 2);
        const auto refused = [&]() -> asio::awaitable<void> { co_await theirs.put("d"); };
        running cancelled(s.ensemble.get_executor(), refused());
        co_await s.zk.sync();
        cancelled.cancel();
        const std::error_code why = co_await cancelled.code();
        CHECK(why == condition::cancelled);
        co_await q.take();
        co_await q.take();
        co_await theirs.put_all(of("1", "2", "3"));  // more than fit into any queue of two
        const work_queue_info three = co_await q.info();
        CHECK(three.waiting == 3);
        co_await other.close();
    });
}

TEST_CASE("work_queue: numbers of items") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const work_queue_info empty = co_await q.info();
        CHECK(empty.waiting + empty.claimed + empty.later + empty.dead == 0);
        co_await q.put_all(of("a", "b", "c"));
        co_await q.put("d", in(10min));
        delivery d = co_await q.receive();
        const work_queue_info n = co_await q.info();
        CHECK(n.waiting == 2);
        CHECK(n.claimed == 1);
        CHECK(n.later == 1);
        CHECK(n.dead == 0);
    });
}

TEST_CASE("work_queue: how long the oldest item has waited, by the servers' clocks") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const work_queue_info none = co_await q.info();
        CHECK_FALSE(none.oldest);
        CHECK_FALSE(s.ensemble.data("/q"));
        co_await q.put("old", put_options().priority(900));
        co_await sleep(10s);
        co_await q.put("urgent", put_options().priority(1));
        co_await q.put("later", in(5s));
        s.ensemble.create("/q/entries/foreign");
        const work_queue_info first = co_await q.info();
        REQUIRE(first.oldest);
        CHECK(*first.oldest >= 10s);
        CHECK(*first.oldest < 11s);
        s.ensemble.remove("/q/entries/foreign");
        delivery urgent = co_await q.receive();
        delivery old = co_await q.receive();
        CHECK(old.item() == "old");
        const work_queue_info claimed = co_await q.info();
        CHECK_FALSE(claimed.oldest);
        co_await urgent.again();
        co_await sleep(5s);
        const work_queue_info back = co_await q.info();
        REQUIRE(back.oldest);  // since it was put, also if it was claimed meanwhile
        CHECK(*back.oldest >= 5s);
        CHECK(*back.oldest < 7s);
        co_await old.done();
        co_await q.take();
        const std::string later = co_await q.take();
        CHECK(later == "later");
    });
}

TEST_CASE("work_queue: an item whose delay has passed is no older than that") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("soon", in(1min));
        delivery d = co_await q.receive();
        co_await d.again();
        const work_queue_info n = co_await q.info();
        REQUIRE(n.oldest);
        CHECK(*n.oldest < 1s);
        co_await q.take();
    });
}

TEST_CASE("work_queue: who may not write is told how many items wait, and not for how long") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await q.put("a");
        co_await q.take();
        co_await q.put("b");
        s.ensemble.refuse("/q/receipts", zk_errc::no_auth);
        const work_queue_info n = co_await theirs.info();
        CHECK(n.waiting == 1);
        CHECK_FALSE(n.oldest);
        s.ensemble.accept("/q/receipts");
        co_await q.take();
        co_await other.close();
    });
}

}  // namespace work_queue_later_tests
