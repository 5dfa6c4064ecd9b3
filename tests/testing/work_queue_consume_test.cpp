#include "testing/work_queue_scene.hpp"

#include <zkasio/error.hpp>

#include <asio/cancellation_state.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

namespace work_queue_consume_tests {

using namespace work_queue_scenes;

TEST_CASE("work_queue: consume runs a body for each item, so many at a time") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        texts put;
        for (int i = 0; i < 12; ++i) put.push_back(std::to_string(100 + i));
        co_await q.put_all(put);
        texts done;
        std::size_t now = 0, most = 0;
        auto body = [&](delivery& d) -> asio::awaitable<void> {
            most = std::max(most, ++now);
            co_await sleep(1s);
            --now;
            done.push_back(d.item());
        };
        const auto consume = [&]() -> asio::awaitable<void> {
            co_await q.consume(body, consume_options().parallel(3));
        };
        running consumer(s.ensemble.get_executor(), consume());
        while (!s.ensemble.children("/q/entries").empty()) co_await sleep(100ms);
        consumer.cancel();
        const std::error_code end = co_await consumer.code();
        CHECK(end == condition::cancelled);
        std::sort(done.begin(), done.end());
        CHECK(done == put);
        CHECK(most == 3);
    });
}

TEST_CASE(
    "work_queue: a body that throws has its item again after a pause, "
    "and at last among the dead") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q", work_queue_options().most_deliveries(3));
        co_await q.put_all(of("bad", "good", "worse"));
        texts log;
        const auto begin = s.ensemble.now();
        auto body = [&](delivery& d) -> asio::awaitable<void> {
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(s.ensemble.now() - begin).count();
            log.push_back(std::to_string(seconds) + " " + d.item() + " " + std::to_string(d.attempt()));
            if (d.item() == "bad") throw std::runtime_error("cannot do that");
            if (d.item() == "worse") throw 7;
            co_return;
        };
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body); };
        running consumer(s.ensemble.get_executor(), consume());
        while (!s.ensemble.children("/q/entries").empty()) co_await sleep(100ms);
        consumer.cancel();
        co_await consumer.end();
        CHECK(log == texts{"0 bad 1", "0 good 1", "0 worse 1", "1 bad 2", "1 worse 2", "3 bad 3", "3 worse 3"});
        const std::vector<dead_item> dead = co_await q.dead();
        REQUIRE(dead.size() == 2);
        CHECK(dead[0].reason == "cannot do that");
        CHECK(dead[1].reason == "an exception that is no std::exception");
    });
}

TEST_CASE(
    "work_queue: a body may end its delivery itself, and a body that is "
    "cancelled gives its item back") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put_all(of("done", "rejected", "again", "endless"));
        int again = 0;
        auto body = [&](delivery& d) -> asio::awaitable<void> {
            if (d.item() == "done") co_await d.done(transaction().create("/effect"));
            if (d.item() == "rejected") co_await d.reject("no");
            if (d.item() == "again" && ++again == 1) co_await d.again();
            if (d.item() == "endless") co_await sleep(100h);
        };
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body); };
        running consumer(s.ensemble.get_executor(), consume());
        while (s.ensemble.children("/q/entries").size() > 1) co_await sleep(100ms);
        consumer.cancel();
        const std::error_code end = co_await consumer.code();
        CHECK(end == condition::cancelled);
        CHECK(again == 2);
        CHECK(s.ensemble.exists("/effect"));
        CHECK(items(s.ensemble) == texts{"endless"});
        const std::vector<dead_item> dead = co_await q.dead();
        CHECK(dead.size() == 1);
    });
}

TEST_CASE("work_queue: a consume that is cancelled says so, also if a claim was lost before") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        bool is_lost = false, may_end = false;
        auto body = [&](delivery& d) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            s.ensemble.remove("/q/taken/" + d.name());
            while (d.held()) co_await sleep(100ms);
            is_lost = true;
            while (!may_end) co_await sleep(100ms);
        };
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body); };
        running consumer(s.ensemble.get_executor(), consume());
        while (!is_lost) co_await sleep(100ms);
        consumer.cancel();
        may_end = true;
        const std::error_code end = co_await consumer.code();
        CHECK(end == condition::cancelled);
        CHECK(items(s.ensemble) == texts{"a"});
    });
}

TEST_CASE(
    "work_queue: consume goes on over the end of sessions, and fails "
    "with what is no outage") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        std::map<std::string, int> begun;
        texts done;
        auto body = [&](delivery& d) -> asio::awaitable<void> {
            if (++begun[d.item()] == 1 && d.item() != "c") s.ensemble.expire(s.zk);
            co_await sleep(5s);
            done.push_back(d.item());
        };
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body); };
        running consumer(s.ensemble.get_executor(), consume());
        co_await theirs.put_all(of("a", "b", "c"));
        while (!s.ensemble.children("/q/entries").empty()) co_await sleep(100ms);
        CHECK(done == texts{"a", "b", "c"});
        CHECK(begun == std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 1}});
        s.ensemble.create("/q/entries/notes");
        const std::error_code end = co_await consumer.code();
        CHECK(end == errc::foreign_child);
        s.ensemble.remove("/q/entries/notes");
        const std::function<asio::awaitable<void>(delivery&)> empty;
        const ended e = co_await end_of(q.consume(empty));
        CHECK(e.said == "consume /q: invalid argument (the body is empty)");
        co_await other.close();
    });
}

TEST_CASE("work_queue: consume ends with its client") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto all = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        co_await q.put("a");
        auto body = [&](delivery&) -> asio::awaitable<void> { co_await sleep(100h); };
        const auto consume = [&]() -> asio::awaitable<void> {
            co_await q.consume(body, consume_options().parallel(2));
        };
        running consumer(e.get_executor(), consume());
        while (e.children("/q/taken").empty()) co_await sleep(100ms);
        co_await zk.close();
        const std::error_code end = co_await consumer.code();
        CHECK(end == errc::client_closed);
    };
    e.run(all);
    CHECK(e.children("/q/entries").size() == 1);
}

TEST_CASE("work_queue: a warning above 20 000 items, once") {
    fake_ensemble e;
    std::size_t warnings = 0;
    client_options o = calm();
    o.log([&](const log_record& r) { warnings += r.text().find("the work_queue /q has 20001 items") == 0; },
          log_level::warning);
    const client zk = e.client(o);
    auto all = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        const texts many(20'001, "x");
        co_await q.put_all(many);
        for (int i = 0; i < 2; ++i) {
            const std::string got = co_await q.take();
            CHECK(got == "x");
        }
        co_await zk.close();
    };
    e.run(all);
    CHECK(warnings == 1);
}

}  // namespace work_queue_consume_tests
