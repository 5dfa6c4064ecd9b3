#include "testing/steps.hpp"
#include "testing/work_queue_scene.hpp"

#include <asio/post.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace work_queue_tests {

using namespace work_queue_scenes;

TEST_CASE("work_queue: the nodes are those of kazoo's LockingQueue") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("first");
        co_await q.put("urgent", put_options().priority(7));
        CHECK(s.ensemble.children("/q/entries") == texts{"entry-007-0000000001", "entry-100-0000000000"});
        CHECK(s.ensemble.data("/q/entries/entry-100-0000000000") == "first");
        {
            delivery d = co_await q.receive();
            CHECK(d.item() == "urgent");
            CHECK(d.name() == "entry-007-0000000001");
            CHECK(d.attempt() == 1);
            CHECK(d.held());
            CHECK(s.ensemble.children("/q/taken") == texts{"entry-007-0000000001"});
            CHECK(s.ensemble.owns(s.zk, "/q/taken/entry-007-0000000001"));
            CHECK(d.token() == fencing_token(s.ensemble.stat("/q/taken/entry-007-0000000001")->czxid));
            CHECK(s.ensemble.children("/q/entries").size() == 2);
            co_await d.done();
            CHECK_FALSE(d.held());
            CHECK(d.reason() == loss_reason::released);
            CHECK(s.ensemble.children("/q/taken").empty());
            CHECK(items(s.ensemble) == texts{"first"});
        }
        const std::string taken = co_await q.take();
        CHECK(taken == "first");
        CHECK(s.ensemble.children("/q/entries").empty());
        const std::optional<std::string> nothing = co_await q.try_take();
        CHECK_FALSE(nothing);
        CHECK(q.path() == "/q");
    });
    CHECK(s.ensemble.paths() == texts{"/q", "/q/dead", "/q/entries", "/q/later", "/q/receipts", "/q/taken"});
}

TEST_CASE(
    "work_queue: an item that is given back keeps its place, and counts "
    "its deliveries") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put_all(of("a", "b"));
        for (int attempt = 1; attempt <= 3; ++attempt) {
            delivery d = co_await q.receive();
            CHECK(d.item() == "a");
            CHECK(d.attempt() == attempt);
            if (attempt == 1) {
                co_await d.again();
                CHECK(s.ensemble.children("/q/taken").empty());
                co_await d.again();  // does nothing
            }
            if (attempt == 2) {
                delivery moved = std::move(d);
                CHECK(moved.held());
                CHECK_FALSE(d.held());
            }  // given back
            if (attempt == 3) co_await d.done();
            co_await s.zk.idle();
        }
        CHECK(items(s.ensemble) == texts{"b"});
    });
}

TEST_CASE(
    "work_queue: a lost answer of any request neither loses nor doubles "
    "an item") {
    for (const char* request : {"create", "multi", "get", "children", "sync"})
        for (int skipped = 0; skipped < 4; ++skipped) {
            INFO(request << " " << skipped);
            scene s;
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q(s.zk, "/q");
                int seen = 0;
                s.ensemble.on_step([&](std::string_view step) {
                    if (step.find(std::string("apply 0: ") + request) != std::string_view::npos && seen++ == skipped)
                        s.ensemble.lose_answer(s.zk, request);
                });
                for (const char* data : {"a", "b", "c"}) co_await q.put(data);
                CHECK(items(s.ensemble) == texts{"a", "b", "c"});
                for (const char* data : {"a", "b"}) {
                    delivery d = co_await q.receive();
                    CHECK(d.item() == data);
                    CHECK(d.attempt() == 1);
                    co_await d.done();
                }
                const std::string taken = co_await q.take();
                CHECK(taken == "c");
                CHECK(s.ensemble.children("/q/entries").empty());
            });
        }
}

TEST_CASE("work_queue: a cut at any step, or any two, neither loses nor doubles, in any layout") {
    const auto play = [&](const layout_case& l, std::size_t first, std::size_t second, std::uint64_t seed) {
        INFO(l.name << ", cuts after " << first << " and " << second << " steps, seed " << seed);
        scene s(seed);
        const client other = s.ensemble.client(calm());
        std::size_t step = 0;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue ours = l.queue(s.zk), theirs = l.queue(other);
            cut_at_steps(s.ensemble, s.zk, other, first, second, step);
            texts done;
            const auto produce = [&]() -> asio::awaitable<void> {
                for (const char* data : {"a", "b", "c"}) co_await theirs.put(data, l.how());
                const std::string taken = co_await theirs.take();
                done.push_back(taken);
            };
            const auto consume = [&]() -> asio::awaitable<void> {
                for (int i = 0; i < 2; ++i) {
                    delivery d = co_await ours.receive();
                    co_await d.done();
                    done.push_back(d.item());
                }
            };
            running a(s.ensemble.get_executor(), produce()), b(s.ensemble.get_executor(), consume());
            const std::error_code produced = co_await a.code(), consumed = co_await b.code();
            s.ensemble.on_step(nullptr);
            CHECK_FALSE(produced);
            CHECK_FALSE(consumed);
            std::sort(done.begin(), done.end());
            CHECK(done == texts{"a", "b", "c"});
            co_await other.close();
        });
        CHECK(lasting_nodes(s.ensemble) == l.directories());
        return step;
    };
    for (const layout_case& l : all_layouts()) {
        const std::size_t steps = play(l, 10000, 0, 1), most = l.items == "/q" ? 3 : 8;
        REQUIRE(steps > 20);
        for (std::size_t first = 0; first < steps; ++first)
            for (std::size_t second = 0; second < most; ++second) play(l, first, second, 1 + first % 3);
    }
}

TEST_CASE(
    "work_queue: one consumer gets the items by priority, and as they "
    "were put") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const texts wanted = {"u1", "u2", "n1", "n2", "n3", "l1"};
        co_await q.put("l1", put_options().priority(200));
        co_await q.put_all(of("n1", "n2"));
        co_await q.put("u1", put_options().priority(0));
        co_await q.put("n3");
        co_await q.put("u2", put_options().priority(0));
        for (const std::string& next : wanted) {
            const std::string got = co_await q.take();
            CHECK(got == next);
        }
    });
}

TEST_CASE("work_queue: a more urgent item overtakes those that are known already") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await theirs.put_all(of("a", "b", "c", "d"));
        const std::string first = co_await q.take();
        CHECK(first == "a");
        co_await theirs.put("urgent", put_options().priority(1));
        const std::string second = co_await q.take();
        CHECK(second == "urgent");
        co_await other.close();
    });
}

TEST_CASE(
    "work_queue: waiting consumers are served in the order of their "
    "calls, by one listing") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), same(s.zk, "/q"), theirs(other, "/q");
        co_await theirs.put("warm up");
        co_await q.take();
        texts got;
        const auto one = [&](const work_queue& from, int n) -> asio::awaitable<void> {
            const std::string item = co_await from.take();
            got.push_back(std::to_string(n) + item);
        };
        std::vector<std::unique_ptr<running>> all;
        for (int i = 0; i < 9; ++i)
            all.push_back(std::make_unique<running>(s.ensemble.get_executor(), one(i % 2 ? q : same, i)));
        const auto nothing_to_do = [&]() -> asio::awaitable<void> { co_await s.zk.idle(); };
        co_await nothing_to_do();
        CHECK(s.ensemble.watched_paths() == texts{"/q/entries", "/q/later"});
        const std::size_t before = s.ensemble.requests(s.zk);
        all[3]->cancel();
        const std::error_code cancelled = co_await all[3]->code();
        CHECK(cancelled == condition::cancelled);
        co_await theirs.put_all(of("a", "b", "c", "d", "e", "f", "g", "h"));
        for (auto& r : all) co_await r->end();
        CHECK(got == texts{"0a", "1b", "2c", "4d", "5e", "6f", "7g", "8h"});
        CHECK(s.ensemble.requests(s.zk) - before < 40);
        co_await other.close();
    });
}

TEST_CASE("work_queue: a long queue is listed a few times, not once per item") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        texts all;
        for (int i = 0; i < 2000; ++i) all.push_back(std::to_string(i));
        co_await q.put_all(all);
        std::size_t listings = 0;
        s.ensemble.on_step([&](std::string_view step) {
            listings += step.find("apply 0: children") != std::string_view::npos ||
                        step.find("children /q/entries") != std::string_view::npos;
        });
        for (int i = 0; i < 400; ++i) {
            const std::string got = co_await q.take();
            if (got != std::to_string(i)) CHECK(got == std::to_string(i));
        }
        CHECK(listings > 0);
        CHECK(listings < 30);
    });
}

TEST_CASE(
    "work_queue: the end of a session gives its items to others, and "
    "tells the consumer") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await theirs.put("job");
        delivery d = co_await q.receive();
        bool cancelled = false;
        const auto work = [&]() -> asio::awaitable<void> {
            asio::steady_timer forever(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            try {
                co_await forever.async_wait(asio::use_awaitable);
            } catch (const std::system_error&) {
                cancelled = true;
                throw;
            }
        };
        const auto run = [&]() -> asio::awaitable<void> { co_await d.run(work); };
        running body(s.ensemble.get_executor(), run());
        s.ensemble.expire(s.zk);
        delivery second = co_await theirs.receive();
        CHECK(second.item() == "job");
        CHECK(second.attempt() == 2);
        CHECK(second.token() > d.token());
        const std::error_code lost = co_await body.code();
        CHECK(lost == errc::lock_lost);
        CHECK(cancelled);
        CHECK_FALSE(d.held());
        const loss_reason why = co_await d.lost();
        CHECK(why == loss_reason::session_expired);
        const ended done = co_await end_of(d.done());
        CHECK(done.said ==
              "done /q/entries/entry-100-0000000000: lock lost "
              "(session expired)");
        co_await second.done();
        co_await other.close();
    });
}

TEST_CASE("work_queue: a wait goes on in the next session, and so does a put") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        std::string got;
        const auto wait = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
        co_await q.create();
        running waits(s.ensemble.get_executor(), wait());
        co_await s.zk.idle();
        s.ensemble.expire(s.zk);
        co_await q.put("ours");
        co_await waits.end();
        CHECK(got == "ours");
        co_await other.close();
    });
}

TEST_CASE("work_queue: an operator who removes a claim, an item or a directory") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await theirs.put("job");
        delivery d = co_await q.receive();
        s.ensemble.remove("/q/taken/" + d.name());
        delivery second = co_await theirs.receive();
        CHECK(second.attempt() == 2);
        const ended done = co_await end_of(d.done());
        CHECK(done.code == errc::lock_lost);
        CHECK_FALSE(done.unknown);
        d = delivery();  // must not give back what is the other consumer's
        co_await s.zk.idle();
        CHECK(s.ensemble.owns(other, "/q/taken/" + second.name()));
        s.ensemble.remove("/q/entries/" + second.name());
        const ended gone = co_await end_of(second.done());
        CHECK(gone.said ==
              "done /q/entries/entry-100-0000000000: lock lost "
              "(another client has removed the item "
              "in spite of the claim)");
        second = delivery();
        co_await other.idle();
        CHECK(s.ensemble.children("/q/taken").empty());

        std::string got;
        const auto wait = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
        running waits(s.ensemble.get_executor(), wait());
        co_await s.zk.idle();
        for (const char* path : {"/q/entries", "/q/taken"}) {
            for (const std::string& name : s.ensemble.children(path)) s.ensemble.remove(std::string(path) + "/" + name);
            s.ensemble.remove(path);
        }
        co_await theirs.put("again");
        co_await waits.end();
        CHECK(got == "again");
        co_await other.close();
    });
}

TEST_CASE("work_queue: a foreign child is named, and waits go on when it is gone") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        s.ensemble.create("/q/entries/notes");
        const ended e = co_await end_of(q.receive());
        CHECK(e.code == errc::foreign_child);
        CHECK(e.said.find("\"notes\"") != std::string::npos);
        s.ensemble.remove("/q/entries/notes");
        const std::string got = co_await q.take();
        CHECK(got == "a");
    });
}

TEST_CASE(
    "work_queue: what is put at once is one transaction, and more of it "
    "several") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.create();
        std::size_t multis = 0;
        s.ensemble.on_step(
            [&](std::string_view step) { multis += step.find("apply 0: multi") != std::string_view::npos; });
        co_await q.put_all(of("a", "b", "c"));
        CHECK(multis == 1);
        const std::string large(400 * 1024, 'x');
        co_await q.put_all(of(large, large, large));
        CHECK(multis == 3);
        CHECK(items(s.ensemble).size() == 6);
        co_await q.put_all(texts());
        CHECK(multis == 3);
        transaction order;
        order.create("/order-1");
        q.put_with(order, "deliver 1");
        co_await s.zk.multi(std::move(order));
        CHECK(items(s.ensemble).back() == "deliver 1");
        for (const char* data : {"a", "b", "c"}) {
            const std::string got = co_await q.take();
            CHECK(got == data);
        }
        for (int i = 0; i < 3; ++i) {
            const std::string got = co_await q.take();
            CHECK(got == large);
        }
    });
}

TEST_CASE(
    "work_queue: an item of the largest size is handed out, and a larger "
    "one refused") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const ended e = co_await end_of(q.put(std::string(1024 * 1024 - 1024, 'x')));
        CHECK(e.code == errc::too_large);
        const std::string digits = e.said.substr(e.said.find("at most ") + 8);
        const std::size_t most = std::stoul(digits);
        CHECK(most > 1'000'000);
        const ended larger = co_await end_of(q.put(std::string(most + 1, 'x')));
        CHECK(larger.code == errc::too_large);
        co_await q.put(std::string(most, 'x'));
        delivery d = co_await q.receive();
        CHECK(d.item().size() == most);
        co_await d.done();
        transaction steps;
        CHECK_THROWS_AS(q.put_with(steps, std::string(most + 1, 'x')), error);
        CHECK(steps.empty());
    });
}

TEST_CASE("work_queue: done applies the effect with the removal, or neither") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("job");
        s.ensemble.create("/taken");
        delivery d = co_await q.receive();
        const ended refused = co_await end_of(d.done(transaction().create("/taken")));
        CHECK(refused.code == zk_errc::node_exists);
        CHECK_FALSE(refused.unknown);
        CHECK(d.held());
        s.ensemble.lose_answer(s.zk, "multi");
        co_await d.done(transaction().create("/effect"));
        CHECK(s.ensemble.exists("/effect"));
        CHECK(s.ensemble.children("/q/entries").empty());
        const ended twice = co_await end_of(d.done());
        CHECK(twice.code == errc::lock_released);
        const ended empty = co_await end_of(delivery().done());
        CHECK(empty.said == "done: lock not held (this delivery was moved from)");
    });
}

TEST_CASE(
    "work_queue: a cancellation at any step leaves no claim, no watch, "
    "and no item too few") {
    std::size_t steps = 1;
    for (std::size_t at = 0; at < steps; ++at) {
        INFO("cancelled after " << at << " steps");
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q"), same(s.zk, "/q");
            co_await same.put("job");
            std::size_t step = 0;
            std::optional<ended> told;
            const auto one = [&]() -> asio::awaitable<void> { told = co_await end_of(q.receive()); };
            std::optional<running> receives(std::in_place, s.ensemble.get_executor(), one());
            s.ensemble.on_step([&](std::string_view) {
                if (step++ == at) asio::post(s.ensemble.context(), [&] { receives->cancel(); });
            });
            co_await receives->end();
            s.ensemble.on_step(nullptr);
            steps = std::max(steps, at == 0 ? 40 : step);
            REQUIRE(told);
            CHECK((!told->code || told->code == condition::cancelled));
            co_await s.zk.idle();
            CHECK(s.ensemble.children("/q/taken").empty());
            CHECK(items(s.ensemble) == texts{"job"});
            const std::string got = co_await q.take();
            CHECK(got == "job");
            const std::optional<std::string> none = co_await q.try_take();
            CHECK_FALSE(none);
            co_await s.zk.idle();
            co_await s.zk.sync();  // behind the removals of the watches
            CHECK(s.ensemble.watches() == 0);
        });
    }
}

TEST_CASE(
    "work_queue: the client's close ends a wait and a put at any step, "
    "under that name") {
    std::size_t steps = 1;
    for (std::size_t at = 0; at < steps; ++at) {
        INFO("closed after " << at << " steps");
        fake_ensemble e;
        const client zk = e.client(calm()), other = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const work_queue q(zk, "/q"), theirs(other, "/q");
            std::size_t step = 0;
            ended received, put;
            const auto receive = [&]() -> asio::awaitable<void> {
                for (;;) {
                    received = co_await end_of(q.receive());
                    if (received.code) break;
                }
            };
            const auto produce = [&]() -> asio::awaitable<void> { put = co_await end_of(q.put("a")); };
            std::optional<running> closes;
            const auto close = [&]() -> asio::awaitable<void> { co_await zk.close(); };
            e.on_step([&](std::string_view) {
                if (step++ == at) asio::post(e.context(), [&] { closes.emplace(e.get_executor(), close()); });
            });
            running a(e.get_executor(), receive()), b(e.get_executor(), produce());
            co_await theirs.put("b");
            co_await b.end();
            if (!closes) closes.emplace(e.get_executor(), close());
            co_await a.end();
            e.on_step(nullptr);
            co_await closes->end();
            steps = std::max(steps, at == 0 ? 40 : step);
            INFO(received.said << "; " << put.said);
            CHECK(received.code == errc::client_closed);
            CHECK((!put.code || put.code == errc::client_closed));
            co_await other.close();
        };
        e.run(body);
        CHECK(e.children("/q/taken").empty());
    }
}

TEST_CASE("work_queue: consumers of several processes share the items") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        fake_ensemble e(seed);
        e.lag();
        std::vector<client> clients;
        for (int i = 0; i < 4; ++i) clients.push_back(e.client(calm()));
        auto body = [&]() -> asio::awaitable<void> {
            texts got;
            int left = 60;
            const auto consume = [&](client zk) -> asio::awaitable<void> {
                const work_queue q(zk, "/q");
                while (left-- > 0) {
                    const std::string item = co_await q.take();
                    got.push_back(item);
                }
            };
            std::vector<running> all;
            for (const client& zk : clients)
                for (int i = 0; i < 3; ++i) all.emplace_back(e.get_executor(), consume(zk));
            const work_queue q(clients[0], "/q");
            texts put;
            for (int i = 0; i < 60; ++i) put.push_back(std::to_string(1000 + i));
            co_await q.put_all(texts(put.begin(), put.begin() + 40));
            for (int i = 40; i < 60; ++i) co_await q.put(put[static_cast<std::size_t>(i)]);
            for (running& r : all) co_await r.end();
            std::sort(got.begin(), got.end());
            CHECK(got == put);
            for (const client& zk : clients) co_await zk.close();
        };
        e.run(body);
    }
}

}  // namespace work_queue_tests
