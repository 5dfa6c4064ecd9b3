// What a client tells: the stream of events, the log, and callbacks.

#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <malloc.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("core: the stream of events", "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        session_events events = zk.events();
        const session_event first = co_await events.next();
        CHECK(first.state == session_state::connecting);
        const session_event connected = co_await events.next();
        CHECK(connected.state == session_state::connected);
        CHECK(connected.session_id == 0x1001);
        CHECK(has(connected.reason, "0x1001"));
        CHECK(has(connected.reason, "fake:2181"));

        r.server.drop("cable cut");
        const session_event suspended = co_await events.next();
        CHECK(suspended.state == session_state::suspended);
        CHECK(suspended.session_id == 0x1001);
        CHECK(has(suspended.reason, "cable cut"));
        const session_event again = co_await events.next();
        CHECK(again.state == session_state::connected);

        r.server.expire();
        const session_event expired = co_await events.next();
        CHECK(expired.state == session_state::expired);
        CHECK(expired.session_id == 0x1001);
        CHECK(has(expired.reason, "0x1001"));
        const session_event connecting = co_await events.next();
        CHECK(connecting.state == session_state::connecting);
        const session_event second = co_await events.next();
        CHECK(second.state == session_state::connected);
        CHECK(second.session_id == 0x1002);

        session_events late = zk.events();
        const session_event now = co_await late.next();
        CHECK(now.state == session_state::connected);
        CHECK(now.session_id == 0x1002);

        co_await zk.close();
        const session_event closed = co_await events.next();
        CHECK(closed.state == session_state::closed);
        for (int i = 0; i < 2; ++i) {
            const std::error_code over = co_await code_of(events.next());
            CHECK(over == errc::client_closed);
        }
    };
    r.run(body);
}

TEST_CASE("core: a slow reader of events misses the oldest", "[core][session]") {
    // Many servers, so that the next attempt follows at once.
    rig r(client_options("10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5,10.0.0.6,10.0.0.7,10.0.0.8,10.0.0.9"));
    auto body = [&](client zk) -> asio::awaitable<void> {
        session_events events = zk.events();
        co_await zk.connected();
        for (int i = 0; i < 130; ++i) {
            const std::size_t before = r.server.connections;
            r.server.drop("number " + std::to_string(i));
            co_await r.server.until([&] { return r.server.connections == before + 1; });
            co_await zk.exists("/");  // an answered request: the next attempt follows at once again
        }
        const session_event oldest = co_await events.next();
        CHECK(oldest.state != session_state::connecting);
        int count = 1;
        for (session_event e = oldest; e.reason != "connection lost: number 129"; ++count) e = co_await events.next();
        CHECK(count <= 256);
        CHECK(count >= 254);
    };
    r.run(body);
}

TEST_CASE("core: what is logged", "[core][session]") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) { lines.emplace_back(line); }));
    auto body = [&](client zk) -> asio::awaitable<void> { co_await zk.connected(); };
    r.run(body);
    REQUIRE(lines.size() >= 3);
    CHECK(lines.front() == "connecting: connecting to 10.0.0.1:2181");
    CHECK(has(lines[1], "connected: session 0x1001"));
    CHECK(lines.back() == "closed: closed");
}

TEST_CASE("core: what is logged is told between the core's own turns, and may use the client", "[core][session]") {
    std::optional<client> zk_of_sink;
    std::size_t told = 0;
    rig r(rig::quick().log([&](std::string_view line) {
        ++told;
        if (!has(line, "suspended") || !zk_of_sink) return;
        CHECK(zk_of_sink->state() != session_state::connecting);
        toolbox(*zk_of_sink).start_children("/from the sink");
        zk_of_sink.reset();
    }));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        zk_of_sink = zk;
        r.server.drop();
        co_await r.server.until([&] { return r.server.count("children /from the sink") == 1; });
    };
    r.run(body);
    CHECK(told >= 4);
}

TEST_CASE("core: what a log sink or a callback throws ends nothing", "[core][session]") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) {
        lines.emplace_back(line);
        throw std::runtime_error("the disk is full");
    }));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        asio::post(zk.get_executor(),
                   [zk] { toolbox(zk).start_children("/a").then([] { throw std::runtime_error("thrown by then"); }); });
        co_await r.server.until(
            [&] { return !lines.empty() && lines.back() == "a callback has thrown: thrown by then"; });
        co_await zk.get("/b");
    };
    r.run(body);
    CHECK(lines.back() == "closed: closed");
}

TEST_CASE("core: what a callback throws that is called at once is logged, too", "[core][session]") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) { lines.emplace_back(line); }));
    const auto logged = [&](const std::string& line) {
        return std::count(lines.begin(), lines.end(), "a callback has thrown: " + line) == 1;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        const watched<node_data> seen = co_await zk.get_and_watch("/a");
        r.server.fire(node_event::data_changed, "/a");
        co_await seen.changes.changed();
        r.server.expire();
        co_await first.ended();
        std::function<asio::awaitable<void>()> on_strand = [&]() -> asio::awaitable<void> {
            seen.changes.then([](std::error_code, node_change) { throw std::runtime_error("watch"); });
            toolbox(first).start_children("/a").then([] { throw std::runtime_error("pending"); });
            first.hold("/a").on_lost([](loss_reason) { throw std::runtime_error("hold"); });
            co_return;
        };
        co_await asio::co_spawn(zk.get_executor(), on_strand(), asio::use_awaitable);
    };
    r.run(body);
    CHECK(logged("watch"));
    CHECK(logged("pending"));
    CHECK(logged("hold"));
}

TEST_CASE("core: readers of events that are gone leave nothing behind", "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        std::function<asio::awaitable<void>()> on_strand = [&]() -> asio::awaitable<void> {
            for (int i = 0; i < 100; ++i) zk.events();
            const std::size_t before = ::mallinfo2().uordblks;  // 0 with a sanitizer
            for (int i = 0; i < 100'000; ++i) zk.events();
            CHECK(::mallinfo2().uordblks < before + 1'000'000);
            co_return;
        };
        co_await asio::co_spawn(zk.get_executor(), on_strand(), asio::use_awaitable);
        const session_events events = zk.events();
        for (int i = 0; i < 100; ++i) zk.events();
        const session_event first = co_await events.next();
        CHECK(first.state == session_state::connected);
        r.server.drop();
        const session_event next = co_await events.next();
        CHECK(next.state == session_state::suspended);
    };
    r.run(body);
}
