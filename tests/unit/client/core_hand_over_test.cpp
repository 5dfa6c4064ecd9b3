#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <algorithm>
#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

asio::awaitable<void> leave(client zk, std::optional<session_credentials>& left) { left = co_await zk.hand_over(); }

asio::awaitable<void> keep_code_of(asio::awaitable<void> what) { co_await code_of(std::move(what)); }

bool said_goodbye(const rig& r) { return std::count(r.server.log.begin(), r.server.log.end(), "goodbye") > 0; }

}  // namespace

TEST_CASE("core: two that hand the session over at a time get the same credentials", "[core][close]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        std::optional<session_credentials> first, second;
        const running one(r.loop.executor(), leave(zk, first)), other(r.loop.executor(), leave(zk, second));
        const std::exception_ptr failed = co_await one.end(), also_failed = co_await other.end();
        CHECK_FALSE((failed || also_failed));
        REQUIRE((first && second));
        CHECK(first->id() == 0x1001);
        CHECK(first->password() == "0123456789abcdef");
        CHECK(second->id() == first->id());
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        CHECK_FALSE(said_goodbye(r));
    };
    r.run(body);
}

TEST_CASE("core: a session that was handed over to a call that was cancelled is told to the next one",
          "[core][close]") {
    rig r;
    r.server.answer = [](const request&) { return std::optional<reply>(); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.loop.spawn(keep_code_of(get(zk, "/a")));  // closing waits for its answer
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        std::optional<session_credentials> left;
        running cancelled(r.loop.executor(), leave(zk, left));
        co_await r.server.until([&] { return r.core->is_closing(); });
        cancelled.cancel();
        const std::error_code code = co_await cancelled.code();
        CHECK(code == asio::error::operation_aborted);
        CHECK_FALSE(left);
        r.server.reply_to_all();
        const session_credentials told = co_await zk.hand_over();
        CHECK(told.id() == 0x1001);
        CHECK_FALSE(said_goodbye(r));
    };
    r.run(body);
}

TEST_CASE("core: a session is not handed over without a connection, nor by a client that was closed",
          "[core][close]") {
    rig r(rig::quick().connection_timeout(std::chrono::milliseconds(30)));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto is_connected = [&]() -> asio::awaitable<bool> { co_return zk.state() == session_state::connected; };
        co_await eventually(is_connected);
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const std::error_code no_connection = co_await code_of(zk.hand_over());
        CHECK(no_connection == errc::not_connected);
        r.server.reachable = true;
        co_await eventually(is_connected);
        co_await zk.close();
        CHECK(said_goodbye(r));
        const std::error_code closed = co_await code_of(zk.hand_over());
        CHECK(closed == errc::client_closed);
    };
    r.run(body);
}
