#include "support/texts.hpp"
#include "unit/support/few_descriptors.hpp"
#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace core_link_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using states = std::vector<session_state>;

// The events that have come so far, without waiting for more than the last.
asio::awaitable<states> states_until(session_events& events, session_state last) {
    states seen;
    do {
        const session_event e = co_await events.next();
        seen.push_back(e.state);
    } while (seen.back() != last);
    co_return seen;
}

}  // namespace

TEST_CASE("core: a session is presumed expired when no server can be asked", "[core][session]") {
    rig r(rig::quick().retry(retry_policy::never()));
    r.server.session_timeout = 600ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        session_events events = zk.events();
        r.server.reachable = false;
        r.server.drop();
        co_await states_until(events, session_state::suspended);
        const auto suspended = boot_clock::now();
        const std::error_code code = co_await code_of(first.set("/a", "x"));
        CHECK(code == errc::session_expired);
        CHECK(boot_clock::now() - suspended >= 600ms);  // 4/3 of it, counted from a little earlier
        r.server.reachable = true;
        const session second = co_await zk.current_session();
        CHECK(second.id() != first.id());
        CHECK(r.server.opened.back().session_id == 0);
    };
    r.run(body);
}

namespace {

// Until the client has given its session up.
asio::awaitable<session> given_up_session(rig& r, client zk) {
    const session first = co_await zk.current_session();
    r.server.reachable = false;
    r.server.drop();
    co_await first.ended();
    co_return first;
}

bool said_goodbye(const rig& r) { return std::ranges::count(r.server.log, "goodbye") > 0; }

}  // namespace

TEST_CASE("core: a session that was given up is ended before another one is opened", "[core][session]") {
    rig r;
    r.server.session_timeout = 300ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await given_up_session(r, zk);
        session_events events = zk.events();
        std::error_code code;
        const auto get = [&]() -> asio::awaitable<void> { code = co_await code_of(zk.get("/a")); };
        const running waiting(r.loop.executor(), get());
        r.server.one_at_a_time();
        r.server.reachable = true;
        co_await r.server.until([&] { return said_goodbye(r); });
        CHECK(r.server.requests.empty());  // the get is for the next session
        CHECK(zk.state() == session_state::connecting);
        const states seen = co_await states_until(events, session_state::connected);
        CHECK(seen == states{session_state::connecting, session_state::connected});
        const session second = co_await zk.current_session();
        CHECK(second.id() != first.id());
        REQUIRE(r.server.opened.size() == 3);
        CHECK(r.server.opened[1].session_id == first.id());
        CHECK(r.server.opened[1].session_password == "0123456789abcdef");
        CHECK(r.server.opened[2].session_id == 0);
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
    };
    r.run(body);
}

TEST_CASE("core: a session that was given up, and whose end is not confirmed, keeps no other from being opened",
          "[core][session]") {
    rig r;
    r.server.session_timeout = 300ms;
    const std::string what = GENERATE("cannot be said", "is not answered", "is cut", "has expired", "refused");
    INFO(what);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await given_up_session(r, zk);
        r.server.can_send_goodbye = what != "cannot be said";
        r.server.says_goodbye = false;
        if (what == "has expired") r.server.expire();
        if (what == "refused") r.server.refuse_auth();
        r.server.reachable = true;
        if (what == "is cut") {
            co_await r.server.until([&] { return said_goodbye(r); });
            r.server.drop();
        }
        const session second = co_await zk.current_session();
        CHECK(second.id() != first.id());
        CHECK(r.server.opened.back().session_id == 0);
        r.server.can_send_goodbye = r.server.says_goodbye = true;
        const close_result how = co_await zk.close();
        CHECK(how == (what == "has expired" ? close_result::confirmed : close_result::session_left_to_expire));
    };
    r.run(body);
}

TEST_CASE("core: a connection that is lost before a former session was ended is followed by another",
          "[core][session]") {
    rig r;
    r.server.session_timeout = 300ms;
    r.server.can_send_goodbye = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await given_up_session(r, zk);
        r.server.reachable = true;
        co_await r.server.until([&] { return r.server.connections == 2; });
        r.server.drop();
        co_await r.server.until([&] { return r.server.connections == 3; });
        r.server.can_send_goodbye = true;
        const session second = co_await zk.current_session();
        REQUIRE(r.server.opened.size() == 3);
        CHECK(r.server.opened[1].session_id == first.id());
        CHECK(r.server.opened[2].session_id == 0);
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
    };
    r.run(body);
}

TEST_CASE("core: closed while a former session is being ended", "[core][session]") {
    rig r;
    r.server.session_timeout = 300ms;
    r.server.says_goodbye = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await given_up_session(r, zk);
        r.server.reachable = true;
        co_await r.server.until([&] { return said_goodbye(r); });
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        CHECK(r.server.opened.size() == 2);
    };
    r.run(body);
}

TEST_CASE("core: credentials are what another process needs", "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session_credentials c = co_await zk.credentials();
        CHECK(c.id() == 0x1001);
        CHECK(c.password() == "0123456789abcdef");
    };
    r.run(body);
}

TEST_CASE("core: another list of servers", "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        co_await zk.set_servers("10.0.0.1:2181");  // no news
        CHECK(r.server.server_lists.empty());
        co_await zk.set_servers("10.0.0.7,10.0.0.8:1");
        REQUIRE(r.server.server_lists.size() == 1);
        CHECK(endpoints(r.server.server_lists[0]) == texts{"10.0.0.7:2181", "10.0.0.8:1"});
        const std::error_code bad = co_await code_of(zk.set_servers("10.0.0.7:0"));
        CHECK(bad == errc::invalid_argument);
        const std::error_code chroot = co_await code_of(zk.set_servers("10.0.0.7/app"));
        CHECK(chroot == errc::invalid_argument);
        co_await s.get("/a");
        r.server.expire();  // the next session is opened with the new list
        co_await s.ended();
        co_await zk.connected();
        CHECK(r.server.opened[1].servers.size() == 2);
    };
    r.run(body);
}

TEST_CASE("core: a server that accepts and says nothing is left after a while", "[core][session]") {
    rig r(rig::quick().session_timeout(300ms));
    r.server.session_timeout = 300ms;
    r.server.silent = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.server.until([&] { return std::count(r.server.log.begin(), r.server.log.end(), "abort") == 1; });
        r.server.silent = false;
        co_await zk.connected();
    };
    r.run(body);
}

TEST_CASE("core: without descriptors, the client looks again and again whether a half sent request may go on",
          "[core][session]") {
    if (!few_descriptors::is_possible()) return;
    rig r;
    r.server.tick = 1h;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const few_descriptors none(0);
        r.server.wants_write = true;
        co_await zk.exists("/a");
        co_await r.server.until([&] { return !r.server.wants_write; });
    };
    r.run(body);
}

TEST_CASE("core: messages name the servers that were given last", "[core][session]") {
    rig r(client_options("10.0.0.1:2181/app").connection_timeout(20ms).close_timeout(200ms));
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string before = co_await message_of(zk.connected());
        CHECK(before == "connect 10.0.0.1:2181/app: not connected (connection refused)");
        co_await zk.set_servers("10.0.0.7,10.0.0.8:1");
        const std::string after = co_await message_of(zk.connected());
        CHECK(after == "connect 10.0.0.7,10.0.0.8:1/app: not connected (connection refused)");
    };
    r.run(body);
}

TEST_CASE("core: servers that take long to open a session get more time with each round", "[core][session]") {
    rig r(rig::quick().session_timeout(900ms));
    r.server.session_timeout = 900ms;
    r.server.handshake = 400ms;  // more than a third
    auto body = [&](client zk) -> asio::awaitable<void> { co_await zk.connected(); };
    r.run(body);
}

TEST_CASE("core: a send that fails is told at once, and what comes behind it is not sent before the next connection",
          "[core][session]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.send_fails = true;
        const pending_children first = toolbox(zk).start_children("/a");
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        CHECK(zk.state() == session_state::suspended);
        const pending_children second = toolbox(zk).start_children("/b");
        const std::error_code lost = co_await code_of(first.result());
        CHECK(lost == zk_errc::connection_loss);
        co_await second.result();
        r.server.send_fails = true;
        auto on_the_clients_strand = [&]() -> asio::awaitable<void> {  // all of this leaves together
            const pending_children c = toolbox(zk).start_children("/c"), d = toolbox(zk).start_children("/d"),
                                   e = toolbox(zk).start_children("/e");
            const running authenticating(zk.get_executor(), zk.add_auth("digest", "a:b"));
            auto seen = co_await zk.children_and_watch("/f");
            const std::error_code of_c = co_await code_of(c.result());
            CHECK(of_c == zk_errc::connection_loss);
            co_await d.result();
            co_await e.result();
            const std::error_code of_auth = co_await authenticating.code();
            CHECK_FALSE(of_auth);
        };
        co_await asio::co_spawn(zk.get_executor(), on_the_clients_strand(), asio::use_awaitable);
        CHECK(r.server.connections == 3);
        for (const auto& q : r.server.requests)
            if (const auto* auth = std::get_if<add_auth_request>(&q.what)) CHECK_FALSE(auth->known);
    };
    r.run(body);
}

TEST_CASE("core: who lost a connection because nothing came has not tried to connect", "[core][session]") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) { lines.emplace_back(line); }));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.times_out = true;
        co_await r.server.until([&] { return r.server.connections == 2; });
    };
    r.run(body);
    CHECK(std::count(lines.begin(), lines.end(), "suspended: connection lost: no answer for too long") == 1);
    for (const std::string& line : lines) CHECK_FALSE(line.starts_with("cannot connect"));
}

TEST_CASE("core: an event loop that stands still is told from one that has nothing to do", "[core][session]") {
    std::vector<std::string> lines;
    rig r(rig::quick().log([&](std::string_view line) { lines.emplace_back(line); }));
    r.server.session_timeout = 3s;
    const bool blocked = GENERATE(false, true);
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        // More than may be under way, so that no read of our own goes out, and nobody answers.
        r.server.answer = [](const request&) { return std::nullopt; };
        r.server.tick = 350ms;
        std::vector<pending_children> hanging;
        for (int i = 0; i < 1001; ++i) hanging.push_back(toolbox(zk).start_children("/a"));
        co_await r.server.until([&] { return r.server.requests.size() == 1000; });
        co_await next_turns(r.server);
        if (blocked) std::this_thread::sleep_for(1300ms);
        co_await next_turns(r.server);
    };
    r.run(body);
    const auto told = std::count_if(lines.begin(), lines.end(),
                                    [](const std::string& l) { return has(l, "the event loop did not run for"); });
    CHECK(told == blocked);
}

TEST_CASE("core: not connected, and why", "[core][session]") {
    const auto message = [](rig& r) {
        std::string text;
        auto body = [&](client zk) -> asio::awaitable<void> { text = co_await message_of(zk.get("/a")); };
        r.run(body);
        return text;
    };
    SECTION("the first attempt has not ended yet") {
        rig r(rig::quick().connection_timeout(30ms));
        r.server.silent = true;
        CHECK(message(r) == "get /a: not connected (fake:2181: no answer)");
    }
    SECTION("an attempt has failed, and the next one has not ended") {
        rig r(rig::quick().connection_timeout(380ms).session_timeout(300ms));
        r.server.session_timeout = 300ms;
        r.server.silent = true;
        CHECK(has(message(r), "get /a: not connected (fake:2181: no answer"));
    }
    SECTION("nobody is there") {
        rig r(rig::quick().connection_timeout(30ms));
        r.server.reachable = false;
        CHECK(message(r) == "get /a: not connected (connection refused)");
    }
    SECTION("the connection was lost, and nobody is there any more") {
        rig r(rig::quick().connection_timeout(30ms));
        std::string text;
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await zk.connected();
            session_events events = zk.events();
            co_await events.next();
            r.server.silent = true;
            r.server.drop("cable cut");
            const session_event e = co_await events.next();
            CHECK(e.reason == "connection lost: cable cut");
            text = co_await message_of(zk.set("/a", "x"));
        };
        r.run(body);
        CHECK(text == "set /a: not connected (cable cut)");
    }
}

TEST_CASE("core: what misses the client's own root says so", "[core][session]") {
    const std::string why = R"((the chroot "/app" does not exist: see client_options::create_chroot()))";
    rig r(client_options("10.0.0.1:2181/app").close_timeout(200ms));
    r.server.answer = [](const request&) { return refusal(zk_errc::no_node); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        create_options with_parents;
        with_parents.parents(missing_parents::create_container);
        const std::string created = co_await message_of(zk.create("/a"));
        CHECK(created == "create /a: no such node " + why);
        const std::string deep = co_await message_of(zk.create("/a/b", "", with_parents));
        CHECK(deep == "create parent /a: no such node " + why);
        const std::string listed = co_await message_of(zk.children("/"));
        CHECK(listed == "children /: no such node " + why);
        // It may be the parent that is missing, or the chroot.
        const std::string below = co_await message_of(zk.create("/a/b"));
        CHECK(has(below, "the parent does not exist"));
        const std::string read = co_await message_of(zk.get("/a"));
        CHECK(read == "get /a: no such node");
    };
    r.run(body);
}

TEST_CASE("core: a late loop does not give up the connection that has resumed a former session", "[core][session]") {
    rig r;
    r.server.session_timeout = 300ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await given_up_session(r, zk);
        r.server.handshake = 20ms;
        r.server.reachable = true;
        co_await r.server.until([&] { return r.server.opened.size() == 2; });
        const auto turns = r.server.turns;
        co_await r.server.until([&] { return r.server.turns > turns + 1; });
        CHECK(r.server.connections == 1);
        std::this_thread::sleep_for(400ms);
        const session second = co_await zk.current_session();
        CHECK(second.id() != first.id());
        CHECK(std::ranges::count(r.server.log, "abort") == 0);
        CHECK(r.server.connections == 3);
    };
    r.run(body);
}

TEST_CASE("core: a former session is ended first, also if the end of the session makes a callback change the servers",
          "[core][session]") {
    rig r;
    r.server.session_timeout = 300ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        r.server.reachable = false;
        r.server.drop();
        asio::steady_timer t(r.loop.executor());
        t.expires_after(320ms);  // behind the end of the lease
        co_await t.async_wait(asio::use_awaitable);
        const session_hold hold = first.hold("/x");
        loss_reason why = loss_reason::none;
        asio::post(first.get_executor(), [&] {
            hold.on_lost([&](loss_reason r_) {
                why = r_;
                asio::co_spawn(first.get_executor(), zk.set_servers("10.0.0.9:2181"), asio::detached);
            });
        });
        co_await first.ended();
        CHECK(why == loss_reason::session_expired);
        r.server.reachable = true;
        const session second = co_await zk.current_session();
        CHECK(r.server.opened[1].session_id == first.id());
        CHECK(r.server.opened.size() == 3);
    };
    r.run(body);
}

TEST_CASE("core: an unanswered goodbye keeps no session from being opened for longer than the former one can live",
          "[core][session]") {
    rig r(rig::quick().close_timeout(60s));  // longer than the loop of a test runs
    r.server.session_timeout = 300ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await given_up_session(r, zk);
        r.server.says_goodbye = false;
        r.server.reachable = true;
        co_await r.server.until([&] { return said_goodbye(r); });
        co_await zk.current_session();
        r.server.says_goodbye = true;
    };
    r.run(body);
}

TEST_CASE("core: session_renewal::none, too, ends the session that was given up", "[core][session]") {
    rig r(rig::quick().renewal(session_renewal::none));
    r.server.session_timeout = 300ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await given_up_session(r, zk);
        CHECK(zk.state() == session_state::expired);
        r.server.reachable = true;
        co_await r.server.until([&] { return said_goodbye(r) && r.server.backends_alive == 0; });
        REQUIRE(r.server.opened.size() == 2);
        CHECK(r.server.opened[1].session_id == first.id());
        CHECK(zk.state() == session_state::expired);
        const std::error_code code = co_await code_of(zk.get("/a"));
        CHECK(code == errc::session_expired);
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
    };
    r.run(body);
}

TEST_CASE("core: session_renewal::none: close() tells of a session that was given up and not ended", "[core][close]") {
    for (const bool in_reach : {false, true}) {
        CAPTURE(in_reach);
        rig r(rig::quick().renewal(session_renewal::none));
        r.server.session_timeout = 300ms;
        r.server.says_goodbye = false;
        auto body = [&](client zk) -> asio::awaitable<void> {
            co_await given_up_session(r, zk);
            r.server.reachable = in_reach;
            if (in_reach) co_await r.server.until([&] { return said_goodbye(r); });
            const close_result how = co_await zk.close();
            CHECK(how == close_result::session_left_to_expire);
            CHECK(r.server.backends_alive == 0);
            const std::size_t opened = r.server.opened.size();
            asio::steady_timer later(r.loop.executor(), 500ms);
            co_await later.async_wait(asio::use_awaitable);
            CHECK(r.server.opened.size() == opened);
            const std::error_code code = co_await code_of(zk.get("/a"));
            CHECK(code == errc::client_closed);
        };
        r.run(body);
    }
}

TEST_CASE("core: a client that is closed takes no other servers", "[core]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await zk.close();
        const std::string text = co_await message_of(zk.set_servers("10.0.0.2:2181"));
        CHECK(text == "set_servers: client closed");
    };
    r.run(body);
}

}  // namespace core_link_tests
