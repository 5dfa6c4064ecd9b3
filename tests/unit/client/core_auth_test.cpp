#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/recipe/toolbox.hpp>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("core: an accepted credential is presented to every later session", "[core][auth]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        CHECK(r.server.opened[0].auth.empty());
        co_await zk.add_auth("digest", "user:password");
        co_await zk.add_auth("digest", "user:password");  // the same again: the backend has it
        CHECK_FALSE(std::get<add_auth_request>(r.server.requests.at(0).what).known);
        CHECK(std::get<add_auth_request>(r.server.requests.at(1).what).known);
        co_await zk.add_auth("ip", "");
        r.server.expire();
        co_await first.ended();
        co_await zk.connected();
        REQUIRE(r.server.opened.size() == 2);
        REQUIRE(r.server.opened[1].auth.size() == 2);
        CHECK(r.server.opened[1].auth[0].scheme == "digest");
        CHECK(r.server.opened[1].auth[0].credential == "user:password");
        CHECK(r.server.opened[1].auth[1].scheme == "ip");
    };
    r.run(body);
}

// From 3.8.4 on servers ask for the permission to read a node whose stat is wanted.
TEST_CASE("core: a client with credentials that may not read the root is connected", "[core][auth]") {
    const zk_errc answer = GENERATE(zk_errc::no_auth, zk_errc::no_node);
    rig r(rig::quick().auth("digest", "user:password"));
    r.server.own_reads_give = answer;  // of "/", without a watch
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code failed = co_await code_of(zk.connected());
        CHECK_FALSE(failed);
        CHECK(r.server.own_reads > 0);
    };
    r.run(body);
}

TEST_CASE("core: a client with credentials is connected when a server has answered, and not before", "[core][auth]") {
    rig r(rig::quick().auth("digest", "user:password"));
    SECTION("the answer is lost with its connection") {
        r.server.answers_own_reads = false;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const running waiting(r.loop.executor(), connect(zk));
            co_await r.server.until([&] { return r.server.connections == 1 && r.server.own_reads > 0; });
            CHECK_FALSE(waiting.ended());
            r.server.answers_own_reads = true;
            r.server.drop();
            const std::error_code failed = co_await waiting.code();
            CHECK_FALSE(failed);
            CHECK(r.server.connections == 2);
        };
        r.run(body);
    }
    SECTION("the server refuses to answer") {
        r.server.own_reads_give = zk_errc::session_requires_sasl;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const std::string text = co_await message_of(zk.connected());
            CHECK(text == "connect 10.0.0.1:2181: the server requires authentication (by a scheme of its "
                      "setting enforce.auth.schemes, or SASL)");
        };
        r.run(body);
    }
}

TEST_CASE("core: a credential whose answer is lost is presented by the backend, and asked about again",
          "[core][auth]") {
    rig r;
    bool lose = true;
    r.server.answer = [&](const request&) -> std::optional<reply> {
        if (!std::exchange(lose, false)) return reply{};
        r.server.drop();
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.add_auth("digest", "user:password");
        REQUIRE(r.server.requests.size() == 2);
        CHECK_FALSE(std::get<add_auth_request>(r.server.requests[0].what).known);
        CHECK(std::get<add_auth_request>(r.server.requests[1].what).known);
    };
    r.run(body);
}

TEST_CASE("core: a credential waits until the socket is writable, and what is behind it, too", "[core][auth]") {
    rig r;
    r.server.refuse = [&](const request& q) {
        const bool busy = std::holds_alternative<add_auth_request>(q) && r.server.requests.size() == 1;
        r.server.wants_write = busy;
        return busy ? std::make_error_code(std::errc::resource_unavailable_try_again) : std::error_code();
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto on_the_clients_strand = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const running adding(zk.get_executor(), zk.add_auth("digest", "user:password"));
            const pending_children listing = toolbox(zk).start_children("/a");
            co_await listing.result();
            const std::error_code code = co_await adding.code();
            CHECK(code == std::error_code());
        };
        co_await asio::co_spawn(zk.get_executor(), on_the_clients_strand(), asio::use_awaitable);
        CHECK(r.server.texts() == std::vector<std::string>{"add_auth", "add_auth", "children /a"});
    };
    r.run(body);
}

TEST_CASE("core: a refused credential ends the session, and is not presented again", "[core][auth]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        session_events events = zk.events();
        r.server.answer = [&](const request& q) -> std::optional<reply> {
            if (std::holds_alternative<add_auth_request>(q)) r.server.refuse_auth();
            return std::nullopt;
        };
        const pending_children under_way = toolbox(zk).start_children("/a");
        std::optional<error> e;
        try {
            co_await zk.add_auth("bad", "secret");
        } catch (const error& failed) {
            e = failed;
        }
        REQUIRE(e);
        CHECK(e->code() == zk_errc::auth_failed);
        CHECK(e->path() == "bad");
        CHECK_FALSE(has(e->what(), "secret"));
        const std::error_code other = co_await code_of(under_way.result());
        CHECK(other == zk_errc::auth_failed);
        const std::error_code ended = co_await first.ended();
        CHECK(ended == condition::session_ended);

        session_event event = co_await events.next();
        while (event.state != session_state::auth_failed) event = co_await events.next();
        event = co_await events.next();
        CHECK(event.state == session_state::connecting);

        r.server.answer = [](const request&) { return reply{}; };
        co_await zk.get("/a");
        CHECK(r.server.opened.size() == 2);
        CHECK(r.server.opened[1].auth.empty());
        const close_result closed = co_await zk.close();
        CHECK(closed == close_result::session_left_to_expire);  // the first: servers only hang up on it
    };
    r.run(body);
}

TEST_CASE("core: a credential that the backend has does not hide that another one is new", "[core][auth]") {
    rig r(rig::quick().auth("digest", "user:password"));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        co_await zk.add_auth("digest", "user:password");
        r.server.answer = [](const request&) { return std::nullopt; };
        const running adding(r.loop.executor(), zk.add_auth("digest", "new"));
        co_await r.server.until([&] { return r.server.requests.size() == 2; });
        r.server.refuse_auth();
        const std::error_code code = co_await adding.code();
        CHECK(code == zk_errc::auth_failed);
        co_await zk.connected();
        CHECK(zk.state() == session_state::connected);
    };
    r.run(body);
}

TEST_CASE("core: a credential of the options that is refused is final", "[core][auth]") {
    rig r(rig::quick().auth("bad", "x"));
    r.server.silent = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const pending_children queued = toolbox(zk).start_children("/a");
        session_events events = zk.events();
        co_await r.server.until([&] { return !r.server.opened.empty(); });
        r.server.refuse_auth();
        const std::error_code code = co_await code_of(queued.result());
        CHECK(code == zk_errc::auth_failed);
        CHECK(zk.state() == session_state::auth_failed);
        for (int i = 0; i < 2; ++i) {
            const std::string get = co_await message_of(zk.get("/a"));
            CHECK(get == "get /a: authentication failed (a credential of bad)");
            const std::error_code connected = co_await code_of(zk.connected());
            CHECK(connected == zk_errc::auth_failed);
            const std::error_code auth = co_await code_of(zk.add_auth("digest", "a:b"));
            CHECK(auth == zk_errc::auth_failed);
        }
        CHECK(r.server.opened.size() == 1);
        CHECK(r.server.requests.empty());
        const close_result closed = co_await zk.close();
        CHECK(closed == close_result::confirmed);  // there is no session
    };
    r.run(body);
}

TEST_CASE("core: who waits for the connection hears of a final refusal", "[core][auth]") {
    rig r(rig::quick().auth("bad", "x"));
    r.server.silent = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto refuse = [&]() -> asio::awaitable<void> {
            co_await r.server.until([&] { return r.core->pending_operations() == 1 && !r.server.opened.empty(); });
            r.server.refuse_auth();
        };
        r.loop.spawn(refuse());
        const std::error_code code = co_await code_of(zk.connected());
        CHECK(code == zk_errc::auth_failed);
    };
    r.run(body);
}
