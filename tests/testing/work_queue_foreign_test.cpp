// Items, and changes of items, that other clients write: none of them holds up the queue, or is lost.

#include "support/late_executor.hpp"
#include "testing/work_queue_scene.hpp"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>

namespace work_queue_foreign_tests {

using namespace work_queue_scenes;

namespace {

constexpr std::size_t servers_limit = 1024 * 1024 - 1;

// The data of an item with one value, in a node of this size.
std::string data_of(const layout_case& l, std::size_t node_size, const std::string& frame = {}) {
    if (!l.is_framed()) return std::string(node_size, 'x');
    std::string data("\x00\x01\x00\x01\x01", 5);
    const std::size_t size = node_size - 10;
    for (const int shift : {24, 16, 8, 0}) data += static_cast<char>(size >> shift & 0xff);
    return data + std::string(size, 'x') + (frame.empty() ? std::string(1, '\x02') : frame);
}

// The name of the first item of another client.
std::string first_name(const layout_case& l) {
    switch (l.layout.kind()) {
        case queue_kind::kazoo_locking:
        case queue_kind::kazoo: return "entry-001-0000000000";
        case queue_kind::curator_priority: return "queue-0000000010000000000";
        case queue_kind::curator_delay: return "queue-|00000001|0000000000";
        case queue_kind::curator_id: return "queue-|a|0000000000";
        case queue_kind::curator_simple: return "qn-0000000000";
        default: return "queue-0000000000";
    }
}

}  // namespace

TEST_CASE("work_queue: an item as large as a request is handed out, in each layout, and holds up no other item") {
    for (const layout_case& l : all_layouts())
        for (const std::size_t room : {100u, 4000u, 9000u}) {
            INFO(l.name << ", " << room << " bytes less than a request");
            scene s;
            const client other = s.ensemble.client(calm());
            s.run([&]() -> asio::awaitable<void> {
                const work_queue_options once = work_queue_options().most_deliveries(1);
                const work_queue q = l.queue(s.zk, once), theirs = l.queue(other, once);
                co_await q.create();
                const std::string item = l.items + "/" + first_name(l);
                s.ensemble.create(item, data_of(l, servers_limit - room));
                s.ensemble.set(item, data_of(l, servers_limit - room));  // no delivery, although the version is 1
                co_await q.put("small", l.how());
                for (int i = 0; i < 3; ++i) {
                    delivery d = co_await (i == 1 ? theirs : q).receive();
                    CHECK(d.item().size() == servers_limit - room - (l.is_framed() ? 10 : 0));
                    CHECK(d.attempt() == 1);
                    CHECK(d.held());
                    const ended e = co_await end_of(d.reject("no"));
                    CHECK(e.code == errc::too_large);
                    CHECK(d.held());
                    if (i == 2) co_await d.done();
                    if (i < 2) co_await d.again();
                    CHECK(s.ensemble.children(l.claims).empty());
                }
                CHECK_FALSE(s.ensemble.exists(item));
                const std::string next = co_await q.take();
                CHECK(next == "small");
                co_await other.close();
            });
        }
}

TEST_CASE("work_queue: a claim of an item as large as a request is given back once, whichever answer is lost") {
    for (const char* request : {"multi", "exists", "remove"})
        for (int skipped = 0; skipped < 3; ++skipped) {
            INFO(request << " " << skipped);
            scene s;
            const client other = s.ensemble.client(calm());
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q(s.zk, "/q"), theirs(other, "/q");
                co_await q.create();
                s.ensemble.create("/q/entries/entry-100-0000000000", std::string(servers_limit - 100, 'x'));
                int seen = 0;
                s.ensemble.on_step([&](std::string_view step) {
                    if (step.find(std::string("apply 0: ") + request) != std::string_view::npos && seen++ == skipped)
                        s.ensemble.lose_answer(s.zk, request);
                });
                std::size_t first = 0;
                {
                    delivery d = co_await q.receive();
                    first = d.item().size();
                    delivery second;
                    const auto take = [&]() -> asio::awaitable<void> { second = co_await theirs.receive(); };
                    running takes(s.ensemble.get_executor(), take());
                    co_await d.again();
                    co_await takes.end();
                    co_await s.zk.idle();
                    CHECK(s.ensemble.owns(other, "/q/taken/" + second.name()));
                    CHECK(second.held());
                    co_await second.done();
                }
                CHECK(first == servers_limit - 100);
                s.ensemble.on_step(nullptr);
                CHECK(s.ensemble.children("/q/taken").empty());
                co_await other.close();
            });
        }
}

TEST_CASE("work_queue: a body that throws for an item as large as a request does not end consume()") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().most_deliveries(1));
        co_await q.create();
        s.ensemble.create("/q/entries/entry-001-0000000000", std::string(servers_limit - 100, 'x'));
        co_await q.put("small");
        int large = 0, small = 0;
        const auto body = [&](delivery& d) -> asio::awaitable<void> {
            if (d.item() == "small") {
                ++small;
                co_return;
            }
            if (++large < 3) throw std::runtime_error("no");
        };
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body); };
        running consumes(s.ensemble.get_executor(), consume());
        co_await sleep(1min);
        consumes.cancel();
        const std::error_code why = co_await consumes.code();
        CHECK(why == condition::cancelled);
        CHECK(large == 3);
        CHECK(small == 1);
        CHECK(s.ensemble.children("/q/entries").empty());
    });
}

TEST_CASE("work_queue: an item as large as a request that is not one value stays, with a warning") {
    for (const layout_case& l : all_layouts()) {
        if (!l.is_framed()) continue;
        INFO(l.name);
        scene s;
        std::size_t warnings = 0;
        client_options o = calm();
        o.log([&](const log_record& r) { warnings += r.text().find("is not handed out") != std::string::npos; },
              log_level::warning);
        const client logs = s.ensemble.client(o);
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q = l.queue(logs);
            co_await q.create();
            const std::string item = l.items + "/" + first_name(l);
            s.ensemble.create(item, data_of(l, servers_limit - 100, "?"));
            for (const char* data : {"a", "b", "c"}) {
                co_await q.put(data, l.how());
                const std::string got = co_await q.take();
                CHECK(got == data);
            }
            CHECK(s.ensemble.exists(item));
            const std::optional<std::string> none = co_await q.try_take();
            CHECK_FALSE(none);
            s.ensemble.remove(item);
            co_await logs.close();
        });
        CHECK(warnings == 1);
    }
}

TEST_CASE("work_queue: an item that another client writes while it is claimed is lost, and given to a consumer again") {
    for (const layout_case& l : all_layouts())
        for (const bool finishes : {true, false}) {
            INFO(l.name << (finishes ? ", done" : ", again"));
            scene s;
            const client other = s.ensemble.client(calm());
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q = l.queue(s.zk), theirs = l.queue(other);
                co_await q.put("job", l.how());
                delivery d = co_await q.receive();
                const std::string item = l.items + "/" + d.name();
                std::string data = *s.ensemble.data(item);
                data.replace(data.find("job"), 3, "JOB");
                s.ensemble.set(item, data);
                if (finishes) {
                    const ended e = co_await end_of(d.done());
                    CHECK(e.code == errc::lock_lost);
                    CHECK_FALSE(e.unknown);
                } else {
                    co_await d.again();
                }
                co_await s.zk.idle();
                CHECK(s.ensemble.children(l.claims).empty());  // although the delivery is still there
                const std::string got = co_await theirs.take();
                CHECK(got == "JOB");
                co_await other.close();
            });
        }
}

TEST_CASE("work_queue: an item with a delay is moved as it is when it is moved, also if it was just written") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("old", put_options().delay(5s));
        const std::string later = "/q/later/" + s.ensemble.children("/q/later").at(0);
        bool has_read = false, has_written = false;
        s.ensemble.on_step([&](std::string_view step) {
            has_read = has_read || step.find("apply 0: get " + later) != std::string_view::npos;
            if (!has_read || has_written || step.find("apply 0: multi") == std::string_view::npos) return;
            has_written = true;
            s.ensemble.set(later, "new");
        });
        const std::string got = co_await q.take();
        CHECK(has_written);
        CHECK(got == "new");
    });
}

TEST_CASE("work_queue: a dead item is revived as it is when it is revived, also if it was just written") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("old");
        {
            delivery d = co_await q.receive();
            co_await d.reject("no");
        }
        const std::string name = s.ensemble.children("/q/dead").at(0), dead = "/q/dead/" + name;
        bool has_read = false, has_written = false;
        s.ensemble.on_step([&](std::string_view step) {
            has_read = has_read || step.find("apply 0: get " + dead) != std::string_view::npos;
            if (!has_read || has_written || step.find("apply 0: multi") == std::string_view::npos) return;
            has_written = true;
            s.ensemble.set(dead, "new");
            s.ensemble.remove(dead + "/reason");
        });
        const bool revived = co_await q.revive(name);
        CHECK(revived);
        CHECK(has_written);
        const std::string got = co_await q.take();
        CHECK(got == "new");
        CHECK(s.ensemble.children("/q/dead").empty());
    });
}

TEST_CASE("work_queue: an item is handed out in time, also if the servers' time was learned during an outage") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await q.create();
        const auto begin = s.ensemble.now();
        co_await theirs.put("a", put_options().delay(15s));
        s.ensemble.lose_answer(s.zk, "multi");  // which asks for the time
        bool is_asked = false, is_out = false;
        s.ensemble.on_step([&](std::string_view step) {
            if (is_asked && !is_out) asio::post(s.ensemble.context(), [&] { s.ensemble.hold_down(s.zk); });
            is_out = is_asked;
            is_asked = is_asked || step.find("apply 0: multi") != std::string_view::npos;
        });
        std::string got;
        const auto take = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
        running takes(s.ensemble.get_executor(), take());
        co_await sleep(10s);
        CHECK_FALSE(s.ensemble.is_connected(s.zk));
        s.ensemble.let_in(s.zk);
        co_await takes.end();
        CHECK(got == "a");
        CHECK(s.ensemble.now() - begin >= 15s);
        CHECK(s.ensemble.now() - begin < 17s);
        co_await other.close();
    });
}

TEST_CASE("work_queue: an item that becomes due while the queue is listed is noticed") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        INFO("seed " << seed);
        scene s(seed);
        s.ensemble.lag(seed % 2 == 0);
        const client other = s.ensemble.client(calm());
        s.run([&]() -> asio::awaitable<void> {
            const layout_case l = all_layouts().at(seed % 3 == 0 ? 0 : seed % 3 == 1 ? 6 : 7);
            const work_queue q = l.queue(s.zk), theirs = l.queue(other);
            co_await q.create();
            std::vector<std::chrono::nanoseconds> taken;
            const auto take = [&]() -> asio::awaitable<void> {
                for (int i = 0; i < 5; ++i) {
                    co_await q.take();
                    taken.push_back(s.ensemble.now());
                }
            };
            std::vector<std::chrono::nanoseconds> due;
            for (int i = 0; i < 5; ++i) {
                const std::chrono::milliseconds delay((i + 1) * 20);
                co_await theirs.put("x", l.how().delay(delay));
                due.push_back(s.ensemble.now() + delay);
            }
            running takes(s.ensemble.get_executor(), take());
            // For a while, other items come and go, and each of them makes the consumer list again.
            const std::string never = l.layout.kind() == queue_kind::curator_delay
                                          ? l.items + "/queue-|7FFFFFFFFFFFFFFF|"
                                          : l.later + "/7ffffffffffff-100-";
            for (int i = 0; i < static_cast<int>(seed); ++i) {
                const std::string name = never + std::to_string(1'000'000'000 + i);
                s.ensemble.create(name);
                co_await sleep(std::chrono::milliseconds(1 + (seed + static_cast<std::uint64_t>(i)) % 2));
                s.ensemble.remove(name);
            }
            co_await takes.end();
            REQUIRE(taken.size() == due.size());
            for (std::size_t i = 0; i < due.size(); ++i) CHECK(taken[i] - due[i] < 500ms);
            co_await other.close();
        });
    }
}

TEST_CASE("work_queue: an outage just after the claim does not end a wait whose session survives") {
    fake_ensemble e;
    const client zk = e.client(calm().connection_timeout(1s).suspension(suspension_policy::lose));
    const auto late = std::make_shared<late_handlers>();
    auto all = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        co_await q.put("a");
        const std::int64_t session = e.session_id(zk);
        std::string got;
        const auto take = [&]() -> asio::awaitable<void> { got = co_await q.take(); };
        running takes(late_executor(e.context(), late), take());
        while (e.children("/q/taken").empty()) {
            late->run();
            co_await sleep(1ms);
        }
        // The consumer does not run when its claim is answered, and learns later that the claim was lost.
        co_await sleep(1s);
        e.hold_down(zk);
        const auto let_in_at = e.now() + 10s;
        bool is_out = true;
        while (!takes.ended()) {
            co_await sleep(100ms);
            late->run();
            if (is_out && e.now() >= let_in_at) e.let_in(zk);
            is_out = is_out && e.now() < let_in_at;
        }
        const std::error_code why = co_await takes.code();
        CHECK_FALSE(why);
        CHECK(got == "a");
        CHECK(e.session_id(zk) == session);
        co_await zk.close();
    };
    e.run(all);
    late->close();
}

}  // namespace work_queue_foreign_tests
