// Queues of other libraries: what their nodes look like, and what holds when their consumers take part.

#include "testing/work_queue_scene.hpp"

#include <zkasio/queues/work_queue.hpp>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace work_queue_layouts_tests {

using namespace work_queue_scenes;

namespace {

// The data of an item of Curator's.
std::string framed(const texts& values) {
    std::string data("\x00\x01\x00\x01", 4);
    for (const std::string& v : values) {
        data += '\x01';
        for (const int shift : {24, 16, 8, 0}) data += static_cast<char>(v.size() >> shift & 0xff);
        data += v;
    }
    return data + '\x02';
}

// A consumer of another library that regards no claims. Nothing: no item was there, or another consumer was ahead.
asio::awaitable<std::optional<std::string>> take_without_claim(client zk, std::string path, bool with_version) {
    node_children items = co_await zk.children(path);
    std::sort(items.names.begin(), items.names.end());
    if (items.names.empty()) co_return std::nullopt;
    const std::string item = path + "/" + items.names.front();
    std::optional<node_data> found;
    try {
        node_data d = co_await zk.get(item);
        co_await zk.remove(item, with_version ? d.stat.version : any_version);
        found = std::move(d);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::bad_version) throw;
    }
    if (!found) co_return std::nullopt;
    co_return std::move(found->data);
}

}  // namespace

TEST_CASE("work_queue: the nodes of each layout") {
    for (const layout_case& l : all_layouts()) {
        INFO(l.name);
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q = l.queue(s.zk);
            co_await q.create();
            CHECK(s.ensemble.children(l.items).empty());
            co_await q.put("first", l.how());
            const texts names = s.ensemble.children(l.items);
            REQUIRE(names.size() == 1);
            CHECK(names[0].ends_with("0000000000"));
            const std::string data = *s.ensemble.data(l.items + "/" + names[0]);
            CHECK(data == (l.is_framed() ? framed({"first"}) : "first"));
            {
                delivery d = co_await q.receive();
                CHECK(d.item() == "first");
                CHECK(d.name() == names[0]);
                CHECK(s.ensemble.owns(s.zk, l.claims + "/" + names[0]));
                CHECK(s.ensemble.data(l.items + "/" + names[0]) == data);
                const work_queue_info n = co_await q.info();
                CHECK(n.claimed == 1);
                CHECK(n.waiting == 0);
                co_await d.done();
            }
            transaction steps;
            if (l.layout.kind() == queue_kind::curator_delay) {
                CHECK_THROWS_AS(q.put_with(steps, "second", l.how()), error);
                co_await q.put("second");
            } else {
                q.put_with(steps, "second", l.how());
                co_await s.zk.multi(std::move(steps));
            }
            const std::string second = co_await q.take();
            CHECK(second == "second");
        });
        CHECK(lasting_nodes(s.ensemble) == l.directories());
    }
}

TEST_CASE("work_queue: names in the layouts of Curator and of kazoo's Queue") {
    const auto names_of = [](queue_layout layout, std::vector<put_options> puts) {
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q", work_queue_options().layout(layout));
            for (const put_options& how : puts) co_await q.put("x", how);
        });
        return s.ensemble.children("/q");
    };
    CHECK(names_of(queue_layout::kazoo(), {put_options(), put_options().priority(7)}) ==
          texts{"entry-007-0000000001", "entry-100-0000000000"});
    CHECK(names_of(queue_layout::curator(), {put_options()}) == texts{"queue-0000000000"});
    CHECK(names_of(queue_layout::curator_simple(), {put_options()}) == texts{"qn-0000000000"});
    CHECK(names_of(queue_layout::curator_id(), {put_options().id("a/b")}) == texts{"queue-|a_b|0000000000"});
    CHECK(names_of(queue_layout::curator_priority(),
                   {put_options().priority(std::numeric_limits<int>::min()), put_options().priority(-1),
                    put_options().priority(0), put_options()}) ==
          texts{"queue-0800000000000000000", "queue-0FFFFFFFF0000000001", "queue-1000000000000000002",
                "queue-1000000640000000003"});
}

TEST_CASE("work_queue: what a layout cannot express is refused, and nothing is sent") {
    for (const layout_case& l : all_layouts()) {
        INFO(l.name);
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q = l.queue(s.zk);
            co_await s.zk.sync();
            const std::size_t before = s.ensemble.requests(s.zk);
            const queue_kind k = l.layout.kind();
            std::vector<put_options> wrong;
            if (k != queue_kind::curator_priority) wrong.push_back(l.how().priority(1000));
            if (k != queue_kind::curator_id) wrong.push_back(l.how().id("a"));
            if (k == queue_kind::curator_id) wrong.push_back(put_options());
            for (const put_options& how : wrong) {
                const ended e = co_await end_of(q.put("x", how)), all = co_await end_of(q.put_all(of("x"), how));
                CHECK(e.code == errc::invalid_argument);
                CHECK_FALSE(e.unknown);
                CHECK(all.code == errc::invalid_argument);
                transaction steps;
                CHECK_THROWS_AS(q.put_with(steps, "x", how), error);
                CHECK(steps.empty());
            }
            CHECK(s.ensemble.requests(s.zk) == before);
        });
    }
    const scene s;
    const auto make = [&](const char* path, queue_layout l) {
        try {
            const work_queue q(s.zk, path, work_queue_options().layout(std::move(l)));
        } catch (const error& e) {
            return e.code();
        }
        return std::error_code();
    };
    CHECK(make("/", queue_layout::curator()) == errc::invalid_path);
    CHECK_FALSE(make("/", queue_layout::kazoo_locking()));
    CHECK(make("q", queue_layout::curator()) == errc::invalid_path);
    CHECK(make("/q", queue_layout::curator("/q")) == errc::invalid_argument);
    CHECK(make("/q", queue_layout::curator("/q/locks")) == errc::invalid_argument);
    CHECK_FALSE(make("/q", queue_layout::curator("/q-locks")));
}

TEST_CASE("work_queue: a foreign child is named in each layout, and waits go on when it is gone") {
    for (const layout_case& l : all_layouts())
        for (const char* const child : {"notes", "queue-", "queue-12", "qn-x0000000000", "entry-100-"}) {
            INFO(l.name << ", " << child);
            scene s;
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q = l.queue(s.zk);
                co_await q.put("a", l.how());
                s.ensemble.create(l.items + "/" + child);
                const ended e = co_await end_of(q.receive());
                CHECK(e.code == errc::foreign_child);
                CHECK(e.said.find("\"" + std::string(child) + "\"") != std::string::npos);
                s.ensemble.remove(l.items + "/" + child);
                const std::string got = co_await q.take();
                CHECK(got == "a");
            });
        }
}

TEST_CASE("work_queue: an operator who removes a claim, an item or a directory of any layout") {
    for (const layout_case& l : all_layouts()) {
        INFO(l.name);
        scene s;
        const client other = s.ensemble.client(calm());
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q = l.queue(s.zk), theirs = l.queue(other);
            co_await theirs.put("job", l.how());
            delivery d = co_await q.receive();
            s.ensemble.remove(l.claims + "/" + d.name());
            delivery second = co_await theirs.receive();
            CHECK(second.attempt() == 2);
            const ended done = co_await end_of(d.done());
            CHECK(done.code == errc::lock_lost);
            CHECK_FALSE(done.unknown);
            d = delivery();  // must not give back what is the other consumer's
            co_await s.zk.idle();
            CHECK(s.ensemble.owns(other, l.claims + "/" + second.name()));
            co_await second.done();

            std::string got;
            const auto wait = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
            running waits(s.ensemble.get_executor(), wait());
            co_await s.zk.idle();
            texts all = l.directories();
            for (auto it = all.rbegin(); it != all.rend(); ++it) {
                for (const std::string& name : s.ensemble.children(*it)) s.ensemble.remove(*it + "/" + name);
                s.ensemble.remove(*it);
            }
            co_await theirs.put("again", l.how());
            co_await waits.end();
            CHECK(got == "again");
            co_await other.close();
        });
    }
}

TEST_CASE("work_queue: dead items keep what their names tell") {
    for (const layout_case& l : all_layouts()) {
        INFO(l.name);
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q = l.queue(s.zk, work_queue_options().most_deliveries(1));
            put_options first = l.how();
            if (l.layout.kind() == queue_kind::curator_priority) first.priority(-7);
            co_await q.put("rejected", first);
            co_await q.put("spent", l.how());
            {
                delivery d = co_await q.receive();
                CHECK(d.item() == "rejected");
                const std::string prefix = d.name().substr(0, d.name().size() - 10);
                co_await d.reject("no");
                delivery other = co_await q.receive();
                co_await other.again();
                const std::optional<std::string> none = co_await q.try_take();
                CHECK_FALSE(none);
                const std::vector<dead_item> dead = co_await q.dead();
                REQUIRE(dead.size() == 2);
                for (const dead_item& each : dead) {
                    const bool is_first = each.item == "rejected";
                    CHECK((is_first || each.item == "spent"));
                    CHECK(each.reason == (is_first ? "no" : "delivered 1 times"));
                    if (is_first) CHECK(each.name.starts_with(prefix));
                    const bool revived = co_await q.revive(each.name);
                    CHECK(revived);
                }
            }
            texts got;
            for (int i = 0; i < 2; ++i) {
                const std::string item = co_await q.take();
                got.push_back(item);
            }
            std::sort(got.begin(), got.end());
            CHECK(got == texts{"rejected", "spent"});
        });
        CHECK(lasting_nodes(s.ensemble) == l.directories());
    }
}

TEST_CASE("work_queue: a consumer that regards no claims takes an item that is worked on") {
    for (const layout_case& l : all_layouts()) {
        INFO(l.name);
        scene s;
        const client other = s.ensemble.client(calm());
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q = l.queue(s.zk);
            for (const bool rejects : {false, true}) {
                co_await q.put("job", l.how());
                delivery d = co_await q.receive();
                const std::optional<std::string> taken = co_await take_without_claim(other, l.items, true);
                CHECK(taken);
                CHECK(d.held());
                transaction effect;
                effect.create("/effect");
                asio::awaitable<void> end = rejects ? d.reject("no") : d.done(std::move(effect));
                const ended e = co_await end_of(std::move(end));
                CHECK(e.code == errc::lock_lost);
                CHECK_FALSE(e.unknown);
                CHECK(e.said.find("removed the item in spite of the claim") != std::string::npos);
                CHECK_FALSE(d.held());
                CHECK(d.reason() == loss_reason::node_deleted);
                co_await s.zk.idle();
                CHECK(s.ensemble.children(l.claims).empty());  // although the delivery is still there
            }
            // Given back, or forgotten, after the item was taken.
            co_await q.put("job", l.how());
            {
                delivery d = co_await q.receive();
                co_await take_without_claim(other, l.items, true);
                co_await d.again();
                CHECK(s.ensemble.children(l.claims).empty());
            }
            const work_queue_info n = co_await q.info();
            CHECK(n.dead == 0);
            co_await other.close();
        });
        CHECK(lasting_nodes(s.ensemble) == l.directories());
    }
}

TEST_CASE("work_queue: the claim of an item that was taken goes, whichever answer is lost") {
    for (const char* request : {"multi", "exists", "remove"})
        for (int skipped = 0; skipped < 2; ++skipped) {
            INFO(request << " " << skipped);
            scene s;
            const client other = s.ensemble.client(calm());
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q(s.zk, "/q", work_queue_options().layout(queue_layout::curator()));
                co_await q.put("job");
                delivery d = co_await q.receive();
                co_await take_without_claim(other, "/q", true);
                int seen = 0;
                s.ensemble.on_step([&](std::string_view step) {
                    if (step.find(std::string("apply 0: ") + request) != std::string_view::npos && seen++ == skipped)
                        s.ensemble.lose_answer(s.zk, request);
                });
                co_await d.again();
                s.ensemble.on_step(nullptr);
                CHECK(s.ensemble.children("/q-taken").empty());
                co_await other.close();
            });
        }
}

TEST_CASE("work_queue: below a chroot, the claim of an item that was taken goes as well") {
    fake_ensemble e;
    e.create("/root");
    const client zk = e.client(client_options("fake/root").session_timeout(20s).connection_timeout(1h));
    auto all = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q", work_queue_options().layout(queue_layout::curator("/locks")));
        co_await q.put("job");
        delivery d = co_await q.receive();
        CHECK(e.children("/root/locks").size() == 1);
        e.remove("/root/q/" + d.name());
        const ended done = co_await end_of(d.done());
        CHECK(done.code == errc::lock_lost);
        co_await zk.idle();
        CHECK(e.children("/root/locks").empty());
        co_await zk.close();
    };
    e.run(all);
}

TEST_CASE("work_queue: take() shares each layout with consumers that regard no claims: each item is taken once") {
    constexpr std::size_t n = 24, seeds = 6;
    for (const layout_case& l : all_layouts()) {
        std::size_t foreign_ones = 0;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            INFO(l.name << ", seed " << seed);
            scene s(seed);
            s.ensemble.lag(seed % 2 == 0);
            const client foreign = s.ensemble.client(calm()), other = s.ensemble.client(calm());
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q = l.queue(s.zk), theirs = l.queue(other);
                co_await q.create();
                co_await foreign.sync();
                texts got;
                const auto produce = [&]() -> asio::awaitable<void> {
                    for (std::size_t i = 0; i < n; ++i) co_await theirs.put(std::to_string(100 + i), l.how());
                };
                const auto take = [&]() -> asio::awaitable<void> {
                    while (got.size() < n) {
                        const std::optional<std::string> item =
                            co_await take_without_claim(foreign, l.items, seed % 3 != 0);
                        if (item) got.push_back(l.is_framed() ? item->substr(9, item->size() - 10) : *item);
                        foreign_ones += item.has_value();
                        co_await sleep(1ms);
                    }
                };
                const auto consume = [&](const work_queue& from) -> asio::awaitable<void> {
                    while (got.size() < n) {
                        const std::optional<std::string> item = co_await from.try_take();
                        if (item) got.push_back(*item);
                        co_await sleep(1ms);
                    }
                };
                running a(s.ensemble.get_executor(), produce()), b(s.ensemble.get_executor(), take());
                running c(s.ensemble.get_executor(), consume(q)), d(s.ensemble.get_executor(), consume(theirs));
                for (const running* r : {&a, &b, &c, &d}) {
                    const std::error_code code = co_await r->code();
                    CHECK_FALSE(code);
                }
                std::sort(got.begin(), got.end());
                texts all;
                for (std::size_t i = 0; i < n; ++i) all.push_back(std::to_string(100 + i));
                CHECK(got == all);
                co_await foreign.close();
                co_await other.close();
            });
            CHECK(lasting_nodes(s.ensemble) == l.directories());
        }
        CHECK(foreign_ones > 0);
        CHECK(foreign_ones < n * seeds);
    }
}

TEST_CASE("work_queue: Curator's item of several values becomes an item for each, once, whatever breaks") {
    const auto play = [](std::size_t at, bool expires, std::uint64_t seed) {
        INFO((expires ? "expired" : "cut") << " after " << at << " steps, seed " << seed);
        scene s(seed);
        const client other = s.ensemble.client(calm());
        std::size_t step = 0;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q", work_queue_options().layout(queue_layout::curator_priority("/locks")));
            const work_queue theirs(other, "/q", work_queue_options().layout(queue_layout::curator_priority("/locks")));
            co_await q.create();
            s.ensemble.create("/q/queue-1000000050000000000", framed({"a", "", "b"}));
            s.ensemble.create("/q/queue-1000000050000000001", framed({}));
            s.ensemble.create("/q/queue-1000000060000000002", framed({"last"}));
            at_step(s.ensemble, step, at, [&] { expires ? s.ensemble.expire(s.zk) : s.ensemble.cut(s.zk); });
            texts got;
            const auto take = [&](const work_queue& from) -> asio::awaitable<void> {
                for (;;) {
                    delivery d = co_await from.receive();
                    if (d.item() != "last") CHECK(d.name().starts_with("queue-100000005"));
                    const ended e = co_await end_of(d.done());
                    if (!e.code || e.unknown) got.push_back(d.item());
                }
            };
            running a(s.ensemble.get_executor(), take(q)), b(s.ensemble.get_executor(), take(theirs));
            co_await sleep(5min);
            s.ensemble.on_step(nullptr);
            a.cancel();
            b.cancel();
            co_await a.end();
            co_await b.end();
            CHECK(s.ensemble.children("/q").empty());
            std::sort(got.begin(), got.end());
            if (expires) got.erase(std::unique(got.begin(), got.end()), got.end());  // outcomes that are not known
            CHECK(got == texts{"", "a", "b", "last"});
            CHECK(s.ensemble.children("/q-dead").empty());
            co_await other.close();
        });
        return step;
    };
    const std::size_t steps = std::min<std::size_t>(play(100000, false, 1), 80);
    REQUIRE(steps > 20);
    for (std::size_t at = 0; at < steps; ++at)
        for (const bool expires : {false, true}) play(at, expires, 1 + at % 3);
}

TEST_CASE("work_queue: Curator's items that no value can be read from are dead, and hold up no others") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().layout(queue_layout::curator()));
        co_await q.create();
        const std::string many = framed(texts(5000, "x"));
        s.ensemble.create("/q/queue-0000000000", "text");
        s.ensemble.create("/q/queue-0000000001", many);
        s.ensemble.create("/q/queue-0000000002");
        s.ensemble.create("/q/queue-0000000003", framed(of("good")));
        const std::string got = co_await q.take();
        CHECK(got == "good");
        const std::vector<dead_item> dead = co_await q.dead();
        REQUIRE(dead.size() == 3);
        CHECK(dead[0].item == "text");
        CHECK(dead[0].reason == "the data are not framed as those of Curator's items");
        CHECK(dead[1].item == many);
        CHECK(dead[1].reason == "more values than one transaction takes");
        CHECK(dead[2].item.empty());
        CHECK(s.ensemble.children("/q").empty());
        // An operator who has looked at it may let it wait again; as it is, it dies again.
        const bool revived = co_await q.revive(dead[0].name);
        CHECK(revived);
        const std::optional<std::string> none = co_await q.try_take();
        CHECK_FALSE(none);
        const work_queue_info n = co_await q.info();
        CHECK(n.dead == 3);
    });
}

TEST_CASE("work_queue: Curator's DistributedDelayQueue: by time, and not before it") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().layout(queue_layout::curator_delay("/locks")));
        const auto begin = s.ensemble.now();
        co_await q.put("third", put_options().delay(20s));
        co_await q.put("second", put_options().delay(10s));
        co_await q.put("first");
        CHECK(s.ensemble.children("/q").size() == 3);
        const std::string first = co_await q.take();
        CHECK(first == "first");
        CHECK(s.ensemble.now() - begin < 1s);
        const std::optional<std::string> none = co_await q.try_take();
        CHECK_FALSE(none);
        std::string got;
        const auto take = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
        running takes(s.ensemble.get_executor(), take());
        co_await sleep(1s);
        const std::size_t before = s.ensemble.requests(s.zk);
        co_await sleep(7s);
        CHECK(s.ensemble.requests(s.zk) - before < 8);  // the lease
        // An item of another producer whose time came long ago.
        s.ensemble.create("/q/queue-|00000001|0000000003", framed(of("early")));
        co_await takes.end();
        CHECK(got == "early");
        CHECK(s.ensemble.now() - begin < 9s);
        for (const auto& [item, time] : {std::pair("second", 10s), std::pair("third", 20s)}) {
            const std::string next = co_await q.take();
            CHECK(next == item);
            CHECK(s.ensemble.now() - begin >= time);
            CHECK(s.ensemble.now() - begin < time + 1s);
        }
        // Beyond all timers.
        s.ensemble.create("/q/queue-|7FFFFFFFFFFFFFFF|0000000004", framed(of("never")));
        running never(s.ensemble.get_executor(), take());
        co_await sleep(1min);
        const std::size_t asked = s.ensemble.requests(s.zk);
        co_await sleep(1min);
        CHECK(s.ensemble.requests(s.zk) - asked < 50);
        never.cancel();
        co_await never.end();
        s.ensemble.remove("/q/queue-|7FFFFFFFFFFFFFFF|0000000004");
    });
}

TEST_CASE("work_queue: queues of two layouts in one session keep apart") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue one(s.zk, "/q", work_queue_options().layout(queue_layout::curator())),
            two(s.zk, "/q", work_queue_options().layout(queue_layout::curator("/locks")));
        co_await one.put("a");
        {
            delivery d = co_await one.receive();
            CHECK(s.ensemble.children("/q-taken").size() == 1);
            co_await d.again();
        }
        delivery d = co_await two.receive();
        CHECK(s.ensemble.children("/locks").size() == 1);
        co_await d.done();
    });
}

}  // namespace work_queue_layouts_tests
