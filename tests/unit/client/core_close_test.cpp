#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("core: closing says goodbye, and waits for the answer", "[core][close]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        r.server.log.clear();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK(r.server.log == texts{"goodbye", "close"});
        CHECK(zk.state() == session_state::closed);
        CHECK(s.over());
        const std::error_code ended = co_await s.ended();
        CHECK(ended == errc::client_closed);
    };
    r.run(body);
}

TEST_CASE("core: closing without any session", "[core][close]") {
    rig r;
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);  // there is nothing on any server
        CHECK(r.server.log == texts{"open", "close"});
    };
    r.run(body);
}

TEST_CASE("core: closing while the connection is lost: it comes back, and the session is ended", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        const std::error_code ended = co_await s.ended();
        CHECK(ended == errc::client_closed);  // already
        CHECK(results.empty());
        r.server.reachable = true;
        co_await closing.end();
        CHECK(results[0] == close_result::confirmed);
        CHECK(std::count(r.server.log.begin(), r.server.log.end(), "goodbye") == 1);
    };
    r.run(body);
}

TEST_CASE("core: closing while the connection is lost, and no server can be reached", "[core][close]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const auto began = boot_clock::now();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        CHECK(boot_clock::now() - began >= 200ms);  // close_timeout
    };
    r.run(body);
}

// Whoever has the credentials may have the session by now, and hangs up at this client.
TEST_CASE("core: a session whose credentials were given away is ended over its own connection alone", "[core][close]") {
    const std::string how = GENERATE("connected", "suspended", "hung up at", "presumed expired");
    CAPTURE(how);
    rig r(rig::quick().close_timeout(10s));
    r.server.session_timeout = 600ms;
    r.server.says_goodbye = how == "connected";
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_credentials ours = co_await zk.credentials();
        CHECK(ours.id() == s.id());
        if (how == "suspended" || how == "presumed expired") {
            r.server.reachable = false;
            r.server.drop();
            co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        }
        if (how == "presumed expired") {
            co_await s.ended();
            r.server.reachable = true;
            r.server.says_goodbye = true;
            co_await zk.connected();
        }
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        r.server.reachable = true;
        if (how == "hung up at") {
            co_await r.server.until([&] { return r.server.log.back() == "goodbye"; });
            r.server.drop();
        }
        co_await closing.end();
        CHECK(results[0] == (how == "connected" ? close_result::confirmed : close_result::session_left_to_expire));
        for (std::size_t i = 1; i < r.server.opened.size(); ++i) CHECK(r.server.opened[i].session_id != s.id());
        CHECK(std::count(r.server.log.begin(), r.server.log.end(), "goodbye") == (how == "suspended" ? 0 : 1));
    };
    r.run(body);
}

TEST_CASE("core: closing after the loop was late, when what has come was not read yet", "[core][close]") {
    const bool is_over = GENERATE(false, true);
    rig r(rig::quick().close_timeout(10s));
    r.server.tick = 20ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        is_over ? r.server.expire() : r.server.drop();
        std::this_thread::sleep_for(50ms);
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK(r.server.opened.size() == (is_over ? 1 : 2));
    };
    r.run(body);
}

TEST_CASE("core: closing waits for no longer than the session can last", "[core][close]") {
    rig r(rig::quick().close_timeout(1h));
    r.server.session_timeout = 600ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
    };
    r.run(body);
}

TEST_CASE("core: the session is over when the connection comes back to be closed", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        const std::error_code ended = co_await s.ended();
        CHECK(ended == errc::client_closed);
        CHECK(results.empty());
        r.server.expire();
        r.server.reachable = true;
        co_await closing.end();
        CHECK(results[0] == close_result::confirmed);
        CHECK(r.server.opened.back().session_id != 0);  // no new session
    };
    r.run(body);
}

TEST_CASE("core: a goodbye that cannot be sent, or is not answered", "[core][close]") {
    rig r;
    const bool sent = GENERATE(false, true);
    r.server.can_send_goodbye = sent;
    r.server.says_goodbye = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const auto began = boot_clock::now();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        if (sent) CHECK(boot_clock::now() - began >= 200ms);  // close_timeout
        CHECK(std::count(r.server.log.begin(), r.server.log.end(), "goodbye") == sent);
    };
    r.run(body);
}

TEST_CASE("core: a server that hangs up instead of answering the goodbye: another connection is to end the session",
          "[core][close]") {
    const std::string what = GENERATE("goodbye", "expired", "hangs up again", "unreachable");
    CAPTURE(what);
    rig r(rig::quick().close_timeout(what == "unreachable" ? 200ms : 10s));
    r.server.says_goodbye = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        co_await r.server.until([&] { return r.server.log.back() == "goodbye"; });
        r.server.says_goodbye = what == "goodbye";
        r.server.reachable = what != "unreachable";
        r.server.drop();
        if (what == "expired") r.server.expire();
        if (what == "hangs up again") {
            co_await r.server.until([&] { return std::count(r.server.log.begin(), r.server.log.end(), "goodbye") == 2; });
            r.server.drop();
        }
        co_await closing.end();
        const bool is_over = what == "goodbye" || what == "expired";
        CHECK(results[0] == (is_over ? close_result::confirmed : close_result::session_left_to_expire));
        CHECK(r.server.opened.size() == 2);
        CHECK(r.server.opened[1].session_id == s.id());
    };
    r.run(body);
}

TEST_CASE("core: what a session has watched is not set again when another connection ends it", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto seen = co_await zk.get_and_watch("/a");
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        r.server.log.clear();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK(r.server.log == texts{"close", "open", "goodbye", "close"});
    };
    r.run(body);
}

TEST_CASE("core: a session that was given up may live: closing says so, until the servers must have ended it",
          "[core][close]") {
    rig r;
    r.server.session_timeout = 600ms;
    const int connections = GENERATE(0, 1, 2);
    const bool long_enough = GENERATE(false, true);
    if (long_enough && connections == 0) return;
    INFO(connections << " connections afterwards, " << (long_enough ? "the first is long" : "short"));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        r.server.reachable = false;
        r.server.drop();
        co_await first.ended();
        r.server.says_goodbye = false;  // and so the end of the first one is not confirmed
        for (int i = 0; i < connections; ++i) {
            r.server.reachable = true;
            co_await zk.connected();
            r.server.says_goodbye = true;
            // A wait for what only time brings.
            const auto until = boot_clock::now() + 1230ms;
            if (long_enough && i == 0) co_await r.server.until([&] { return boot_clock::now() > until; });
            if (i + 1 == connections) break;
            r.server.reachable = false;
            r.server.drop();
            co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        }
        const close_result how = co_await zk.close();
        CHECK(how == (long_enough ? close_result::confirmed : close_result::session_left_to_expire));
    };
    r.run(body);
}

TEST_CASE("core: what is under way when closing begins may finish", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_children under_way = toolbox(zk).start_children("/a");
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        co_await next_turns(r.server);
        CHECK(r.server.log.back() != "goodbye");
        r.server.reply_to_all();
        co_await under_way.result();
        co_await closing.end();
        CHECK(results[0] == close_result::confirmed);
        CHECK(r.server.log == texts{"open", "children /a", "goodbye", "close"});
    };
    r.run(body);
}

TEST_CASE("core: what was asked for in the turn in which closing begins is not sent any more", "[core][close]") {
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto on_the_clients_strand = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const pending_children too_late = toolbox(zk).start_children("/a");
            co_await zk.close();
            const std::error_code code = co_await code_of(too_late.result());
            CHECK(code == errc::client_closed);
        };
        co_await asio::co_spawn(zk.get_executor(), on_the_clients_strand(), asio::use_awaitable);
        CHECK(r.server.requests.empty());
    };
    r.run(body);
}

TEST_CASE("core: what is not answered in time fails", "[core][close]") {
    rig r(rig::quick().close_timeout(30ms));
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_children under_way = toolbox(zk).start_children("/a");
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        const auto began = boot_clock::now();
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);  // the goodbye was answered
        CHECK(boot_clock::now() - began >= 30ms);
        const std::error_code code = co_await code_of(under_way.result());
        CHECK(code == errc::client_closed);
    };
    r.run(body);
}

TEST_CASE("core: the connection is lost while closing waits", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        co_await next_turns(r.server);
        r.server.drop();
        co_await closing.end();
        CHECK(results[0] == close_result::confirmed);
        const std::error_code code = co_await code_of(removal.result());
        CHECK(code);
        CHECK(r.server.requests.size() == 1);  // it is not sent again
        CHECK(r.server.connections == 2);
    };
    r.run(body);
}

TEST_CASE("core: the session expires while closing waits", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_children under_way = toolbox(zk).start_children("/a");
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        std::vector<close_result> results;
        const running closing(r.loop.executor(), close(zk, results));
        co_await next_turns(r.server);
        r.server.expire();
        co_await closing.end();
        CHECK(results[0] == close_result::confirmed);
        const std::error_code code = co_await code_of(under_way.result());
        CHECK(code == errc::session_expired);
        CHECK(r.server.opened.size() == 1);  // no new session
    };
    r.run(body);
}

TEST_CASE("core: two may close at a time", "[core][close]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        std::vector<close_result> results;
        const running first(r.loop.executor(), close(zk, results)), second(r.loop.executor(), close(zk, results));
        co_await zk.close();
        co_await first.end();
        co_await second.end();
        CHECK(results == std::vector{close_result::confirmed, close_result::confirmed});
        CHECK(std::count(r.server.log.begin(), r.server.log.end(), "goodbye") == 1);
    };
    r.run(body);
}

TEST_CASE("core: cancelling close() ends the wait only", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    r.server.says_goodbye = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        std::vector<close_result> results;
        running one(r.loop.executor(), close(zk, results));
        co_await r.server.until([&] { return r.server.log.back() == "goodbye"; });
        one.cancel();
        const std::error_code code = co_await one.code();
        CHECK(code == condition::cancelled);
        CHECK(results.empty());
        r.server.says_goodbye = true;
        r.server.drop();
    };
    r.run(body);
}

TEST_CASE("core: the last answer comes in the turn in which closing begins", "[core][close]") {
    rig r;
    r.server.one_at_a_time();
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        close_result how = close_result::session_left_to_expire;
        auto on_the_clients_strand = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const pending_children first = toolbox(zk).start_children("/a"), second = toolbox(zk).start_children("/b");
            co_await r.server.until([&] { return r.server.requests.size() == 2; });
            for (const auto& q : r.server.requests) r.server.reply_to(q.id);
            co_await first.result();
            how = co_await zk.close();
            co_await second.result();
        };
        co_await asio::co_spawn(zk.get_executor(), on_the_clients_strand(), asio::use_awaitable);
        CHECK(how == close_result::confirmed);
    };
    r.run(body);
}

TEST_CASE("core: closing while a server has been asked for a session: it may have opened one", "[core][close]") {
    rig r;
    r.server.silent = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.server.until([&] { return r.server.turns > 2; });
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
    };
    r.run(body);
}

TEST_CASE("core: closing while a server has been asked for a session, which it gives", "[core][close]") {
    rig r(rig::quick().close_timeout(10s));
    r.server.handshake = 20ms;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.server.until([&] { return r.server.turns > 0; });
        CHECK(r.server.connections == 0);
        const close_result how = co_await zk.close();
        CHECK(how == close_result::confirmed);
        CHECK(std::count(r.server.log.begin(), r.server.log.end(), "goodbye") == 1);
    };
    r.run(body);
}

TEST_CASE("core: closing before a session was resumed: it is left", "[core][close]") {
    rig r(rig::quick().resume(session_credentials(17, "0123456789abcdef")));
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
    };
    r.run(body);
}
