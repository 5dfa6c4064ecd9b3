#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

asio::awaitable<void> wait_for_end(session s) {
    const std::error_code code = co_await s.ended();
    throw error(code, "ended");
}

}  // namespace

TEST_CASE("core: what a session is opened with", "[core][session]") {
    rig r(client_options("10.0.0.1:2182,[::1],10.0.0.2/app")
              .session_timeout(7s)
              .auth("digest", "a:b")
              .auth("ip", "")
              .resume(session_credentials(0x77, "0123456789abcdef")));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        CHECK(s.id() == 0x77);
        CHECK(s.timeout() == 10s);  // what the server has granted
        CHECK_FALSE(s.over());
    };
    r.run(body);
    REQUIRE(r.server.opened.size() == 1);
    open_params p = r.server.opened[0];
    CHECK(endpoints(p.servers) == texts{"10.0.0.1:2182", "10.0.0.2:2181", "[::1]:2181"});
    CHECK(p.chroot == "/app");
    CHECK(p.session_timeout == 7s);
    CHECK(p.session_id == 0x77);
    CHECK(p.session_password == "0123456789abcdef");
    REQUIRE(p.auth.size() == 2);
    CHECK(p.auth[0].scheme == "digest");
    CHECK(p.auth[0].credential == "a:b");
    CHECK(p.auth[1].scheme == "ip");
}

TEST_CASE("core: options that make no sense are refused", "[core][session]") {
    fake_server server;
    asio::io_context io;
    const auto code_for = [&](const client_options& o) {
        return code_thrown_by([&] { detail::core(io.get_executor(), o, server.factory()); });
    };
    const auto good = [] { return client_options("10.0.0.1"); };
    CHECK(code_for(good()) == std::error_code());
    CHECK(code_for(client_options("")) == errc::invalid_argument);
    CHECK(code_for(client_options("10.0.0.1:0")) == errc::invalid_argument);
    for (const auto bad : {0ms, -1ms, std::chrono::milliseconds(24h) + 1ms, std::chrono::milliseconds::max()}) {
        CHECK(code_for(good().session_timeout(bad)) == errc::invalid_argument);
        CHECK(code_for(good().connection_timeout(bad)) == errc::invalid_argument);
        CHECK(code_for(good().close_timeout(bad)) == errc::invalid_argument);
    }
    CHECK(code_thrown_by([&] { client(asio::any_io_executor(), good()); }) == errc::invalid_argument);
    // Of 1 ms the C client makes 0 ms for the answer to its handshake; a few more are a matter of luck.
    for (const auto short_one : {1ms, 99ms})
        CHECK(code_for(good().session_timeout(short_one)) == errc::invalid_argument);
    CHECK(code_for(good().session_timeout(100ms).connection_timeout(24h)) == std::error_code());
    CHECK(code_for(good().resume(session_credentials(0, "0123456789abcdef"))) == errc::invalid_argument);
    CHECK(code_for(good().resume(session_credentials(1, "short"))) == errc::invalid_argument);
    CHECK(code_for(good().resume(session_credentials(1, "0123456789abcdef"))) == std::error_code());
    CHECK(code_for(good().auth("", "a:b")) == errc::invalid_argument);
    CHECK(code_for(good().auth("digest", "a:b").auth(std::string(1, '\0'), "")) == errc::invalid_argument);
    CHECK(code_for(good().auth("digest", std::string(operations::max_request, 'a'))) == errc::too_large);
    CHECK(code_for(good().auth("digest", "a:b")) == std::error_code());
}

TEST_CASE("core: expiry ends everything of the session, and a new one is opened", "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        auto seen = co_await zk.get_and_watch("/a");
        const session_hold hold = first.hold("/a");
        r.server.answer = [](const request&) { return std::nullopt; };
        std::vector<running> all;
        all.emplace_back(r.loop.executor(), get(zk, "/issued"));
        all.emplace_back(r.loop.executor(), set(zk, "/issued"));
        all.emplace_back(r.loop.executor(), set(first, "/pinned"));
        all.emplace_back(r.loop.executor(), change(std::move(seen.changes)));
        all.emplace_back(r.loop.executor(), wait_for_end(first));
        const pending_removal removal = toolbox(zk).ensure_removed("/b");
        co_await r.server.until([&] { return r.server.requests.size() == 5; });
        r.server.expire();
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::session_expired);
        CHECK_FALSE(hold.held());
        const std::error_code removed = co_await code_of(removal.result());
        CHECK(removed == errc::session_expired);
        for (const running& one : all) {
            const std::error_code code = co_await one.code();
            CHECK(code == errc::session_expired);
        }
        CHECK(first.over());
        CHECK(r.core->watches() == 0);

        r.server.answer = [](const request&) { return reply{}; };
        co_await zk.get("/c");
        const session second = co_await zk.current_session();
        CHECK(second.id() != first.id());
        CHECK(r.server.opened.size() == 2);
        CHECK(r.server.opened[1].session_id == 0);
        CHECK(r.server.backends_alive == 1);

        // Nothing of the old session is ever used again, and nothing is sent to find that out.
        const std::size_t sent = r.server.requests.size();
        const std::error_code pinned = co_await code_of(first.get("/d"));
        CHECK(pinned == errc::session_expired);
        const session_hold late = first.hold("/a");
        const loss_reason at_once = co_await late.lost();
        CHECK(at_once == loss_reason::session_expired);
        const std::error_code ended = co_await first.ended();
        CHECK(ended == errc::session_expired);
        CHECK(r.server.requests.size() == sent);
    };
    r.run(body);
}

TEST_CASE("core: what is asked for while a session ends goes to the next one", "[core][session]") {
    rig r;
    std::optional<pending_children> unpinned;
    std::optional<pending_create> pinned;
    std::optional<session> next;
    std::error_code refused;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        const session_hold hold = first.hold("/a");
        co_await hold.confirmed();
        const auto lost = [&](loss_reason) {
            unpinned = toolbox(zk).start_children("/x");
            next = zk.session_now();
            pinned = toolbox(*next).start_create("/y", "", create_options());
            toolbox(first).start_children("/z").then([] {});
        };
        asio::dispatch(zk.get_executor(), [&] { hold.on_lost(lost); });
        r.server.expire();
        co_await first.ended();
        CHECK_FALSE(next->over());
        const std::error_code listed = co_await code_of(unpinned->result());
        CHECK(listed == std::error_code());
        const std::error_code created = co_await code_of(pinned->result());
        CHECK(created == std::error_code());
        CHECK(next->id() != first.id());
        CHECK(r.server.count("children /z") == 0);
    };
    r.run(body);
}

TEST_CASE("core: a session that was to be resumed and has expired is named", "[core][session]") {
    rig r(rig::quick().resume(session_credentials(0x77, "0123456789abcdef")));
    r.server.silent = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_events events = zk.events();
        co_await r.server.until([&] { return r.server.turns > 0; });
        r.server.silent = false;
        r.server.expire();
        session_event e = co_await events.next();
        while (e.state != session_state::expired) e = co_await events.next();
        CHECK(e.reason == "session 0x77 has expired");
        CHECK(e.session_id == 0x77);
        co_await zk.connected();
        CHECK(zk.session_now().id() != 0x77);
    };
    r.run(body);
}

TEST_CASE("core: expiry found on reconnecting ends what waits for the connection", "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        r.server.silent = true;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const running queued(r.loop.executor(), set(zk, "/queued")), pinned(r.loop.executor(), set(first, "/pinned"));
        const running connecting(r.loop.executor(), connect(zk));
        co_await r.server.until([&] { return r.core->pending_operations() == 3; });
        r.server.silent = false;
        r.server.expire();
        for (const running* one : {&queued, &pinned}) {
            const std::error_code code = co_await one->code();
            CHECK(code == errc::session_expired);
        }
        // Who only waits for a connection gets the next session's.
        const std::error_code connected = co_await connecting.code();
        CHECK(connected == std::error_code());
        CHECK(r.server.requests.empty());
    };
    r.run(body);
}

TEST_CASE("core: session_renewal::none", "[core][session]") {
    rig r(rig::quick().renewal(session_renewal::none));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        r.server.expire();
        const std::error_code ended = co_await s.ended();
        CHECK(ended == errc::session_expired);
        CHECK(zk.state() == session_state::expired);
        for (int i = 0; i < 2; ++i) {
            const std::error_code code = co_await code_of(zk.get("/a"));
            CHECK(code == errc::session_expired);
            const std::error_code connected = co_await code_of(zk.connected());
            CHECK(connected == errc::session_expired);
        }
        CHECK(r.server.opened.size() == 1);
        CHECK(r.server.backends_alive == 0);
        CHECK(r.server.requests.empty());
    };
    r.run(body);
}

TEST_CASE("core: a session that comes back in time goes on", "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        for (int i = 0; i < 3; ++i) {
            r.server.drop();
            co_await r.server.until([&] { return zk.state() == session_state::suspended; });
            co_await s.get("/a");
        }
        CHECK(r.server.opened.size() == 1);
        CHECK(r.server.connections == 4);
    };
    r.run(body);
}
