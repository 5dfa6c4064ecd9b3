#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/strand.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

asio::awaitable<void> get_and_count(client zk, std::string path, int& ended) {
    co_await zk.get(std::move(path));
    ++ended;
}

}  // namespace

TEST_CASE("core: a request gets its answer", "[core]") {
    rig r;
    r.server.answer = [](const request&) {
        reply a;
        a.data = "data";
        a.stat.version = 7;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const node_data d = co_await zk.get("/a");
        CHECK(d.data == "data");
        CHECK(d.stat.version == 7);
        CHECK(r.server.texts() == texts{"get /a"});
    };
    r.run(body);
    CHECK(r.server.log == texts{"open", "get /a", "goodbye", "close"});
}

TEST_CASE("core: an error names operation and path", "[core]") {
    rig r;
    r.server.answer = [](const request&) { return refusal(zk_errc::no_auth); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string text = co_await message_of(zk.set("/a", "x"));
        CHECK(has(text, "set /a: no permission"));
    };
    r.run(body);
}

TEST_CASE("core: requests before the connection wait, and leave in order in one batch", "[core]") {
    rig r;
    int ended = 0;
    auto body = [&](client zk) -> asio::awaitable<void> {
        for (const char* path : {"/a", "/b", "/c"}) r.loop.spawn(get_and_count(zk, path, ended));
        co_await r.server.until([&] { return ended == 3; });
    };
    r.run(body);
    CHECK(r.server.log == texts{"open", "begin", "get /a", "get /b", "get /c", "end", "goodbye", "close"});
}

TEST_CASE("core: what one turn starts leaves in one batch", "[core]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto on_the_clients_strand = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            r.server.log.clear();
            const pending_children a = toolbox(zk).start_children("/a"), b = toolbox(zk).start_children("/b");
            const pending_removal c = toolbox(zk).ensure_removed("/c");
            co_await c.result();
            CHECK(r.server.log == texts{"begin", "children /a", "children /b", "remove /c", "end"});
            co_await a.result();
            co_await b.result();
            r.server.log.clear();
            co_await zk.get("/d");
            CHECK(r.server.log == texts{"get /d"});
        };
        co_await asio::co_spawn(zk.get_executor(), on_the_clients_strand(), asio::use_awaitable);
    };
    r.run(body);
}

TEST_CASE("core: answers may come in any order, each to its own", "[core]") {
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_children a = toolbox(zk).start_children("/a"), b = toolbox(zk).start_children("/b");
        co_await r.server.until([&] { return r.server.requests.size() == 2; });
        reply first, second;
        first.children = {"first"};
        second.children = {"second"};
        r.server.reply_to(r.server.requests[1].id, second);
        r.server.reply_to(r.server.requests[0].id, first);
        const node_children found_a = co_await a.result(), found_b = co_await b.result();
        CHECK(found_a.names == texts{"first"});
        CHECK(found_b.names == texts{"second"});
    };
    r.run(body);
}

TEST_CASE("core: an answer to nobody is dropped", "[core]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/a");
        r.server.reply_to(r.server.requests[0].id);
        r.server.reply_to(999'999);
        co_await zk.get("/b");
        CHECK(r.core->pending_operations() == 0);
    };
    r.run(body);
}

TEST_CASE("core: a request that the backend refuses fails at once, unsent", "[core]") {
    rig r;
    r.server.refuse = [](const request& q) {
        return path_of(q) == "/bad" ? make_error_code(zk_errc::bad_arguments) : std::error_code();
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<error> e;
        try {
            co_await zk.set("/bad", "x");
        } catch (const error& failed) {
            e = failed;
        }
        REQUIRE(e);
        CHECK(e->code() == zk_errc::bad_arguments);
        CHECK_FALSE(e->outcome_unknown());
        // It does not take the rest of its batch along.
        const pending_children good = toolbox(zk).start_children("/a"), bad = toolbox(zk).start_children("/bad"),
                               other = toolbox(zk).start_children("/b");
        co_await good.result();
        co_await other.result();
        const std::error_code code = co_await code_of(bad.result());
        CHECK(code == zk_errc::bad_arguments);
    };
    r.run(body);
}

TEST_CASE("core: without a connection requests fail after connection_timeout, with the last failure", "[core]") {
    rig r(rig::quick().connection_timeout(30ms));
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto began = boot_clock::now();
        std::optional<error> e;
        try {
            co_await zk.set("/a", "x");
        } catch (const error& failed) {
            e = failed;
        }
        REQUIRE(e);
        CHECK(e->code() == errc::not_connected);
        CHECK_FALSE(e->outcome_unknown());
        CHECK(has(e->what(), "connection refused"));
        CHECK(boot_clock::now() - began >= 30ms);
        const std::string text = co_await message_of(zk.connected());
        CHECK(has(text, "not connected"));
        CHECK(has(text, "connection refused"));
        const std::error_code code = co_await code_of(zk.get("/a"));  // a read waits no longer than a write
        CHECK(code == errc::not_connected);
        const std::string limited = co_await message_of(timeout(1ms, zk.get("/a")));
        CHECK(limited == "get /a: timed out (no connection: connection refused)");
        CHECK(r.server.requests.empty());

        // The client goes on trying.
        r.server.reachable = true;
        co_await r.server.until([&] { return r.server.connections == 1; });
        co_await zk.get("/a");
    };
    r.run(body);
}

TEST_CASE("core: the same while the connection is lost", "[core]") {
    rig r(rig::quick().connection_timeout(30ms));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.reachable = false;
        r.server.drop();
        session_events events = zk.events();
        while ((co_await events.next()).state != session_state::suspended) {
        }
        CHECK(zk.state() == session_state::suspended);
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == errc::not_connected);
    };
    r.run(body);
}

TEST_CASE("core: a lost connection: reads are repeated, writes are not", "[core]") {
    rig r;
    int lose = 2;
    r.server.answer = [&](const request&) -> std::optional<reply> {
        if (lose-- > 0) {
            r.server.drop();
            return std::nullopt;
        }
        return reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/a");
        CHECK(r.server.texts() == texts{"get /a", "get /a", "get /a"});
        CHECK(r.server.connections == 3);

        lose = 1;
        std::optional<error> e;
        try {
            co_await zk.set("/a", "x");
        } catch (const error& failed) {
            e = failed;
        }
        REQUIRE(e);
        CHECK(e->code() == zk_errc::connection_loss);
        CHECK(e->outcome_unknown());
        CHECK(r.server.count("set /a") == 1);
        CHECK(r.server.opened.size() == 1);  // one session all along
    };
    r.run(body);
}

TEST_CASE("core: reads are repeated as the policy says", "[core]") {
    rig r(rig::quick().retry(retry_policy::n_times(2, 1ms)));
    r.server.answer = [&](const request&) { return lost(); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string given_up = co_await message_of(zk.get("/a"));
        CHECK(given_up == "get /a: connection lost");  // for a read it makes no difference whether it has arrived
        CHECK(r.server.count("get /a") == 3);
        r.server.answer = [](const request&) { return refusal(zk_errc::no_node); };
        const std::error_code definite = co_await code_of(zk.get("/b"));
        CHECK(definite == zk_errc::no_node);
        CHECK(r.server.count("get /b") == 1);
    };
    r.run(body);
}

TEST_CASE("core: a coroutine resumes on its own executor", "[core]") {
    rig r;
    const auto strand = asio::make_strand(r.loop.executor());
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto on_strand = [&]() -> asio::awaitable<void> {
            const auto here = [&] {
                return strand.running_in_this_thread() && !r.core->strand().running_in_this_thread();
            };
            CHECK(here());
            co_await zk.connected();
            CHECK(here());
            co_await zk.get("/a");
            CHECK(here());
            const auto seen = co_await zk.get_and_watch("/a");
            CHECK(here());
            r.server.fire(node_event::data_changed, "/a");
            co_await seen.changes.changed();
            CHECK(here());
            session_events events = zk.events();
            co_await events.next();
            CHECK(here());
            r.server.answer = [](const request&) { return refusal(zk_errc::no_node); };
            const std::error_code code = co_await code_of(zk.get("/a"));
            CHECK(here());
            CHECK(code == zk_errc::no_node);
        };
        co_await asio::co_spawn(strand, on_strand(), asio::use_awaitable);
    };
    r.run(body);
}

TEST_CASE("core: a coroutine of another thread", "[core]") {
    rig r;
    asio::io_context other;
    auto work = asio::make_work_guard(other);
    std::thread thread([&] { other.run(); });
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto elsewhere = [](client z, std::thread::id expected) -> asio::awaitable<int> {
            int there = 0;
            for (int i = 0; i < 100; ++i) {
                co_await z.get("/a");
                there += std::this_thread::get_id() == expected;
            }
            co_return there;
        };
        const int there = co_await asio::co_spawn(other, elsewhere(zk, thread.get_id()), asio::use_awaitable);
        CHECK(there == 100);
    };
    r.run(body);
    work.reset();
    thread.join();
}

TEST_CASE("core: a read of one session is not repeated in the next", "[core]") {
    const bool watching = GENERATE(false, true);
    const std::size_t losses = GENERATE(1U, 2U);
    rig r(rig::quick().retry(retry_policy::n_times(5, 1ms)));
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session mine = co_await zk.current_session();
        std::function<asio::awaitable<void>()> read = [&]() -> asio::awaitable<void> {
            if (!watching) {
                co_await get(mine, "/a");
            } else {
                const auto seen = co_await mine.get_and_watch("/a");
            }
        };
        const running reading(r.loop.executor(), read());
        for (std::size_t asked = 1; asked <= losses; ++asked) {
            co_await r.server.until([&] { return r.server.count("get /a") == asked; });
            if (asked == losses) r.server.answer = [](const request&) { return reply(); };
            r.server.reply_to(r.server.requests.back().id, lost());
        }
        r.server.expire();
        const std::error_code code = co_await reading.code();
        CHECK(code == errc::session_expired);
        CHECK(r.server.count("get /a") == losses);
    };
    r.run(body);
}
