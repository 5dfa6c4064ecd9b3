#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// A task that only its cancellation ends, and that takes its time over that.
asio::awaitable<void> take_leave_slowly(fake_server& server, bool& ended) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    std::error_code cancelled;
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await next_turns(server);
    ended = cancelled == condition::cancelled;
}

}  // namespace

TEST_CASE("core: closing ends all that waits", "[core][close]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        auto seen = co_await zk.get_and_watch("/a");
        const session_hold hold = s.hold("/a");
        session_events events = zk.events();
        const running watching(r.loop.executor(), change(std::move(seen.changes)));
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const running getting(r.loop.executor(), get(zk, "/queued")), connecting(r.loop.executor(), connect(zk));
        const pending_removal removal = toolbox(zk).ensure_removed("/b");
        co_await r.server.until([&] { return r.core->pending_operations() == 4; });

        co_await zk.close();
        CHECK(hold.reason() == loss_reason::closed);
        CHECK_FALSE(hold.held());
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::closed);
        const std::error_code removed = co_await code_of(removal.result());
        CHECK(removed == errc::client_closed);
        for (const running* one : {&watching, &getting, &connecting}) {
            const std::error_code code = co_await one->code();
            CHECK(code == errc::client_closed);
        }
        session_event last = co_await events.next();
        while (last.state != session_state::closed) last = co_await events.next();
    };
    r.run(body);
}

TEST_CASE("core: after closing everything fails at once", "[core][close]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const auto seen = co_await zk.get_and_watch("/a");
        co_await zk.close();
        const std::error_code get = co_await code_of(zk.get("/a"));
        const std::error_code pinned = co_await code_of(s.get("/a"));
        const std::error_code connected = co_await code_of(zk.connected());
        const std::error_code auth = co_await code_of(zk.add_auth("digest", "a:b"));
        const std::error_code change = co_await code_of(seen.changes.changed());
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        const std::error_code removed = co_await code_of(removal.result());
        for (const std::error_code& code : {get, pinned, connected, auth, change, removed})
            CHECK(code == errc::client_closed);
        const session_hold hold = s.hold("/a");
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::closed);
        toolbox(zk).run_in_background(connect(zk));  // never begins
        const close_result again = co_await zk.close();
        CHECK(again == close_result::confirmed);
        CHECK(r.server.texts() == texts{"get /a"});
    };
    r.run(body);
}

TEST_CASE("core: the last handle closes", "[core][close]") {
    rig r;
    {
        std::optional<client> zk = client_over(r.core);
        auto copy = std::make_unique<client>(*zk);
        auto body = [&]() -> asio::awaitable<void> {
            co_await copy->get("/a");
            zk.reset();
            co_await copy->get("/b");
            copy.reset();
        };
        r.loop.run(body());
    }
    CHECK(r.server.log == texts{"open", "get /a", "get /b", "goodbye", "close"});
    CHECK(r.core->state() == session_state::closed);
    r.nothing_left();
}

TEST_CASE("core: a client that is destroyed before it has begun", "[core][close]") {
    rig r;
    { const client zk = client_over(r.core); }
    r.loop.run();
    CHECK(r.core->state() == session_state::closed);
    r.nothing_left();
}

TEST_CASE("core: background tasks are cancelled, and waited for", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    bool ended = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        toolbox(zk).run_in_background(take_leave_slowly(r.server, ended));
        co_await zk.sync();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK(ended);
    };
    r.run(body);
    CHECK(r.server.log.back() == "close");
}

TEST_CASE("core: a background task that fails is logged", "[core][close]") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) { lines.emplace_back(line); }));
    r.server.answer = [](const request&) { return refusal(zk_errc::no_auth); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        toolbox(zk).run_in_background(get(zk, "/a"));
        co_await r.server.until(
            [&] { return !lines.empty() && lines.back().starts_with("in the background: get /a: no permission"); });
    };
    r.run(body);
}

TEST_CASE("core: a watch that was answered while closing has nothing to wait for", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto see = [&]() -> asio::awaitable<void> {
            const auto seen = co_await zk.get_and_watch("/a");
            co_await seen.changes.changed();
        };
        const running seeing(r.loop.executor(), see());
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        co_await next_turns(r.server);
        r.server.reply_to_all();
        const std::error_code code = co_await seeing.code();
        CHECK(code == errc::client_closed);
    };
    r.run(body);
}

TEST_CASE("core: the context is destroyed under everything that waits", "[core][close]") {
    fake_server server;
    server.answer = [](const request& q) { return is_write(q) ? std::nullopt : std::optional<reply>(reply{}); };
    std::weak_ptr<core> core_left;
    {
        asio::io_context io;
        auto c = std::make_shared<core>(io.get_executor(), rig::quick(), server.factory());
        core_left = c;
        const client zk = client_over(std::move(c));
        auto watch = [](client z) -> asio::awaitable<void> {
            const auto seen = co_await z.get_and_watch("/a");
            co_await seen.changes.changed();
        };
        auto hold = [](client z) -> asio::awaitable<void> {
            const session s = co_await z.current_session();
            const session_hold h = s.hold("/a");
            co_await h.lost();
        };
        auto write = [](client z) -> asio::awaitable<void> { co_await z.set("/a", "x"); };
        auto ignore = [](std::exception_ptr) {};
        asio::co_spawn(io, watch(zk), ignore);
        asio::co_spawn(io, hold(zk), ignore);
        asio::co_spawn(io, write(zk), ignore);
        const pending_removal removal = toolbox(zk).ensure_removed("/b");
        while (server.requests.size() < 3 || !server.watched("/a")) io.run_one_for(1s);
    }
    CHECK(core_left.expired());
    CHECK(server.backends_alive == 0);
}

TEST_CASE("core: credentials are those of a session, also when one ends just then", "[core]") {
    const int turns = GENERATE(0, 1, 2, 3, 4, 5);
    fake_server* server = nullptr;
    bool armed = true;
    rig r(rig::quick().log([&](std::string_view line) {
        if (!line.starts_with("connected") || !std::exchange(armed, false)) return;
        // It ends so many turns of the strand later.
        server->one_at_a_time();
        for (int i = 0; i < turns; ++i) server->fire(node_event::created, "/nobody-watches");
        server->expire();
    }));
    server = &r.server;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_credentials c = co_await zk.credentials();
        CHECK(c.id() != 0);
        CHECK(c.password().size() == 16);
    };
    r.run(body);
}
