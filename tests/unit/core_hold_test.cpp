#include "unit/rig.hpp"

#include "unit/error_of.hpp"

#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

bool is_heartbeat(const request& r) { return std::holds_alternative<multi_request>(r); }

}  // namespace

TEST_CASE("core: without answers the lease ends, and with it every hold", "[core][hold]") {
    constexpr auto T = 300ms;
    rig r;
    r.server.session_timeout = T;
    r.server.answer = [](const request& q) { return is_heartbeat(q) ? std::nullopt : std::optional<reply>(reply{}); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold a = s.hold("/a"), whole = s.hold("");
        co_await a.confirmed();
        const auto end = a.held_until();
        CHECK(end == s.leased_until());
        CHECK(a.held());
        const loss_reason why = co_await a.lost();
        CHECK(why == loss_reason::lease_ended);
        CHECK(boot_clock::now() >= end);
        CHECK(s.leased_until() == end);  // a read, a ping, an open connection extend nothing
        CHECK_FALSE(a.held());
        const loss_reason same = co_await whole.lost();
        CHECK(same == loss_reason::lease_ended);
        const std::error_code confirmed = co_await code_of(a.confirmed());
        CHECK(confirmed == std::error_code());  // it was once
        CHECK_FALSE(s.over());                  // the server may be more patient
    };
    r.run(body);
}

TEST_CASE("core: reads do not extend the lease", "[core][hold]") {
    rig r;
    r.server.session_timeout = 300ms;
    r.server.answer = [](const request& q) { return is_heartbeat(q) ? std::nullopt : std::optional<reply>(reply{}); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await hold.confirmed();
        const auto end = hold.held_until();
        while (hold.reason() == loss_reason::none) {
            co_await s.get("/a");
            co_await s.exists("/a");
            co_await r.server.until([&, turn = r.server.turns] { return r.server.turns > turn; });
        }
        CHECK(hold.reason() == loss_reason::lease_ended);
        CHECK(s.leased_until() == end);
    };
    r.run(body);
}

TEST_CASE("core: a failed write does not extend the lease", "[core][hold]") {
    rig r;
    r.server.session_timeout = 300ms;
    r.server.answer = [](const request& q) { return is_write(q) ? refusal(zk_errc::no_auth) : reply{}; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("");
        co_await hold.confirmed();
        const auto end = hold.held_until();
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::lease_ended);
        CHECK(s.leased_until() == end);
    };
    r.run(body);
}

TEST_CASE("core: a lost connection is no loss with suspension_policy::keep", "[core][hold]") {
    rig r;
    r.server.session_timeout = 3s;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await hold.confirmed();
        const auto before = hold.held_until();
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        CHECK(hold.held());
        co_await zk.connected();
        CHECK(hold.held());
        CHECK(hold.held_until() > before);  // the new handshake
    };
    r.run(body);
}

TEST_CASE("core: a lost connection is the loss with suspension_policy::lose", "[core][hold]") {
    rig r(rig::quick().suspension(suspension_policy::lose));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        co_await hold.confirmed();
        CHECK(hold.held());
        r.server.drop();
        const loss_reason why = co_await hold.lost();
        CHECK(why == loss_reason::suspended);
        CHECK_FALSE(hold.held());
        co_await zk.connected();
        CHECK_FALSE(hold.held());
        CHECK_FALSE(s.over());
        const session_hold next = s.hold("/a");
        co_await next.confirmed();
        CHECK(next.held());
        r.server.reachable = false;
        r.server.drop();
        co_await next.lost();
        const session_hold while_suspended = s.hold("/a");
        const loss_reason at_once = co_await while_suspended.lost();
        CHECK(at_once == loss_reason::suspended);
    };
    r.run(body);
}

TEST_CASE("core: what confirmed() fails with", "[core][hold]") {
    const bool expire = GENERATE(true, false);
    rig r;
    r.server.session_timeout = 300ms;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await r.server.until([&] { return boot_clock::now() > s.leased_until(); });
        const session_hold hold = s.hold("/a");
        auto confirm = [&]() -> asio::awaitable<void> { co_await hold.confirmed(); };
        const running confirming(r.loop.executor(), confirm());
        co_await r.server.until([&] { return r.server.count("multi") == 1; });
        if (expire)
            r.server.expire();
        else
            co_await zk.close();
        const std::error_code code = co_await confirming.code();
        CHECK(code == (expire ? errc::session_expired : errc::client_closed));
    };
    r.run(body);
}

TEST_CASE("core: releasing a hold", "[core][hold]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        session_hold hold = s.hold("/a");
        CHECK(hold.reason() == loss_reason::none);
        session_hold moved = std::move(hold);
        CHECK_FALSE(hold.held());
        CHECK(hold.reason() == loss_reason::released);
        moved.end();
        moved.end();
        CHECK_FALSE(moved.held());
        CHECK(moved.reason() == loss_reason::released);
        const loss_reason why = co_await moved.lost();
        CHECK(why == loss_reason::released);
        const std::error_code code = co_await code_of(moved.confirmed());
        CHECK(code == errc::lock_released);
    };
    r.run(body);
}

TEST_CASE("core: with_session cancels its body when the session ends", "[core][hold]") {
    rig r;
    bool expire = true;
    r.server.session_timeout = 300ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::error_code seen;
        auto work = [&](session s) -> asio::awaitable<void> {
            if (expire)
                r.server.expire();
            else
                r.server.answer = [](const request&) { return std::nullopt; };
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            try {
                co_await never.async_wait(asio::use_awaitable);
            } catch (const std::system_error& e) {
                seen = e.code();
                throw;
            }
            s.id();
        };
        const std::error_code expired = co_await code_of(zk.with_session(work));
        CHECK(expired == errc::session_expired);
        CHECK(seen == condition::cancelled);

        expire = false;
        seen = {};
        const std::string text = co_await message_of(zk.with_session(work));
        CHECK(has(text, "session expired (lease ended)"));
        CHECK(seen == condition::cancelled);
    };
    r.run(body);
}

TEST_CASE("core: with_session passes on how its body ends", "[core][hold]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        bool ran = false;
        auto good = [&](session s) -> asio::awaitable<void> {
            co_await s.get("/a");
            ran = true;
        };
        co_await zk.with_session(good);
        CHECK(ran);
        auto bad = [&](session) -> asio::awaitable<void> {
            throw std::runtime_error("own");
            co_return;
        };
        const std::string text = co_await message_of(zk.with_session(bad));
        CHECK(text == "own");
    };
    r.run(body);
}
